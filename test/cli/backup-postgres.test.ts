import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../support/at-end.ts';
import { tempDir } from '../support/daemon.ts';
import { migratedPostgres } from '../support/migrated-postgres.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS, PostgresServer } from '../support/postgres.ts';
import { addInbox, deliver, type Hook, senders } from './inbox-load.ts';
import { type TestPlatform, testPlatform, withStandIns } from './platform.ts';

const SLOW = { timeout: 180_000 };

function platformOn(url: string, env: Record<string, string | undefined> = {}): Promise<TestPlatform> {
  const real = ['state', 'marketplace', 'gateway'] as const;
  return testPlatform(...withStandIns({ real: [...real], config: { store: { url } }, env }));
}

async function runningInbox(url: string) {
  const platform = await platformOn(url);
  await addInbox(platform);
  expect((await platform.svc('up', '-d')).json).toMatchObject({ ok: true });
  const gateway = (await platform.service('gateway')).url;
  const provision = async (event: string): Promise<Hook> =>
    (await platform.svc('webhooks', 'provision', 'inbox', event)).json.result;
  return { platform, gateway, hooks: { sync: await provision('sync'), async: await provision('async') } };
}

/** An empty database on another server, whose transaction ids start again. */
async function otherServer(): Promise<string> {
  const server = await PostgresServer.start();
  atEnd(() => server.remove());
  return server.url();
}

async function query(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'backups on PostgreSQL' : POSTGRES_MISSING, () => {
  test(
    'a dump under load has every delivery accepted before it, and works on an empty server',
    SLOW,
    async () => {
      const url = await migratedPostgres();
      // Ids of another server are lower, as after years of use.
      await query(url, 'update svc.position_origin set added = 5000000');
      const { platform: source, gateway, hooks } = await runningInbox(url);
      const load = senders(gateway, hooks);
      await expect.poll(() => load.acknowledged.length, { timeout: 30_000 }).toBeGreaterThan(60);
      const before = [...load.acknowledged];
      const archive = join(await tempDir(), 'all.tar.gz');
      const made = await source.svc('backup', archive, '--with-database');
      expect(made.json).toMatchObject({ ok: true, result: { withKeys: true, database: { included: true } } });
      expect(load.acknowledged.length).toBeGreaterThan(before.length);
      await load.stop();

      const target = await platformOn(await otherServer());
      await addInbox(target);
      const restored = await target.svc('restore', archive);
      expect(restored.json).toMatchObject({ ok: true, result: { secretsOpen: true } });
      expect(restored.json.result.database).toBe(await serverOf(target));

      // The original still runs, and the copy does nothing until an operator confirms its use.
      const refused = await target.svc('up', '-d');
      expect(refused.json.error).toMatchObject({ code: 'CONFLICT' });
      expect(refused.json.error.message).toContain('svc migrate --adopt --yes');
      const doctor = await target.svc('doctor');
      expect(JSON.stringify(doctor.json.result.checks)).toContain('is a copy of another one');
      expect((await target.svc('migrate', '--yes')).json.result.adopted).toBe(false);
      expect((await target.svc('up', '-d')).json.ok).toBe(false);
      await source.svc('down');
      expect((await target.svc('migrate', '--adopt', '--yes')).json.result.adopted).toBe(true);
      expect((await target.svc('up', '-d')).json).toMatchObject({ ok: true });

      const there = (await target.service('gateway')).url;
      const again = await Promise.all(
        before.map(({ event, id }) => deliver(there, event, hooks[event as 'sync'], id)),
      );
      expect(again.filter(({ body }) => body.status !== 'duplicate')).toEqual([]);
      // Secrets of the original are opened, and new and old async deliveries are handled.
      expect((await deliver(there, 'sync', hooks.sync, 'new')).body.status).toBe('ok');
      expect((await deliver(there, 'async', hooks.async, 'new')).status).toBe(202);
      const unfinished = async () => {
        const { json } = await target.svc('webhooks', 'deliveries', '--status', 'accepted');
        return json.result.items.length;
      };
      await expect.poll(unfinished, { timeout: 60_000 }).toBe(0);
    },
  );

  test('deliveries that waited in a dump run after the adoption', SLOW, async () => {
    const url = await migratedPostgres();
    await query(url, 'update svc.position_origin set added = 5000000');
    const { platform: source, gateway, hooks } = await runningInbox(url);
    await source.svc('webhooks', 'pause', 'inbox', 'async');
    expect((await deliver(gateway, 'async', hooks.async, 'waits')).status).toBe(202);
    const archive = join(await tempDir(), 'all.tar.gz');
    await source.svc('backup', archive, '--with-database', '--without-telemetry');
    await source.svc('down');
    const target = await platformOn(await otherServer());
    await addInbox(target);
    await target.svc('restore', archive);
    await target.svc('migrate', '--adopt', '--yes');
    await target.svc('up', '-d');
    expect((await target.svc('webhooks', 'resume', 'inbox', 'async')).json.ok).toBe(true);
    const states = async () => {
      const { json } = await target.svc('webhooks', 'deliveries');
      return json.result.items.map(({ status }: { status: string }) => status);
    };
    await expect.poll(states, { timeout: 60_000 }).toEqual(['succeeded']);
  });

  test(
    'without --with-database, the result has the commands, which save and restore the database',
    SLOW,
    async () => {
      const url = await migratedPostgres();
      const source = await platformOn(url);
      await source.svc('up', '-d');
      const archive = join(await tempDir(), 'keys.tar.gz');
      const { json } = await source.svc('backup', archive);
      expect(json.result.database).toMatchObject({ included: false });
      const { dumpCommand } = json.result.database;
      expect(dumpCommand).toContain('--schema=svc');
      const shown = await source.start('backup', archive, '--force').done;
      expect(shown.stdout).toContain('--with-database');
      for (const line of shown.stdout.split('\n').filter((text) => text.startsWith('  ')))
        expect(line.length).toBeLessThanOrEqual(80);
      await source.svc('down');
      await rm(source.dataDir, { recursive: true });
      const restored = await source.svc('restore', archive);
      expect(restored.json).toMatchObject({ ok: true, result: { database: null, secretsOpen: true } });
      expect((await source.svc('up', '-d')).json.ok).toBe(true);
    },
  );

  test(
    'a restore refuses a database with tables, a store in SQLite and a missing program',
    SLOW,
    async () => {
      const source = await platformOn(await migratedPostgres());
      await source.svc('up', '-d');
      await source.svc('down');
      const archive = join(await tempDir(), 'all.tar.gz');
      expect((await source.svc('backup', archive, '--with-database')).json.ok).toBe(true);
      const full = await source.svc('restore', archive, '--yes');
      expect(full.json.error).toMatchObject({ code: 'CONFLICT' });
      expect(full.json.error.message).toContain('already has tables');
      const onSqlite = await testPlatform(...withStandIns());
      expect((await onSqlite.svc('restore', archive)).json.error.message).toContain('store.url is SQLite');
      expect((await onSqlite.svc('restore', archive)).json.error.details.hint).toContain('store.url');
      const empty = await platformOn(await emptyPostgres(), { PATH: await tempDir() });
      expect((await empty.svc('restore', archive)).json.error.message).toBe('pg_restore is not installed.');
    },
  );
});

async function serverOf(platform: TestPlatform): Promise<string> {
  const { json } = await platform.svc('migrate', '--yes');
  return json.result.server;
}
