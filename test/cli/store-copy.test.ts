import { createHmac } from 'node:crypto';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import type { GatewayStore, StateStore, WorkflowStore } from '../../src/store/ports/index.ts';
import {
  PostgresDatabase,
  postgresGatewayStore,
  postgresStateStore,
  postgresWorkflowStore,
} from '../../src/store/postgres/index.ts';
import {
  sqliteGatewayStore,
  sqliteStateStore,
  sqliteWorkflowStore,
  threadedVectorIndex,
} from '../../src/store/sqlite/index.ts';
import { atEnd } from '../support/at-end.ts';
import { migrateDatabase } from '../support/migrated-postgres.ts';
import { FREE_PORTS } from '../support/ports.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { testPlatform } from './platform.ts';

const OPTIONS = { clock: systemClock, logger: silentLogger };
const PROJECT = join(import.meta.dirname, '../fixtures/projects/walk');
const KEEPER = `export async function ping(ctx, input) { await ctx.state.set('n', input); return { exitCode: 0 }; }
export const greet = () => ({ exitCode: 0 });
export const refuse = greet;
export const sweep = greet;`;

function connect(url: string): PostgresDatabase {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  atEnd(() => database.close().catch(() => {}));
  return database;
}

/** Writes a plugin with one command, which is not part of the project. */
async function writeGreeter(folder: string): Promise<string> {
  await mkdir(folder);
  const manifest = {
    ...{ schema: 'svc.plugin/3', id: 'greeter', version: '1.0.0' },
    commands: [{ id: 'hello', handler: 'h.js#hello' }],
  };
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
  const about = { name: 'greeter', version: '1.0.0', type: 'module' };
  await writeFile(join(folder, 'package.json'), JSON.stringify(about));
  await writeFile(join(folder, 'h.js'), "export const hello = () => 'hello';");
  return folder;
}

/** Uses a platform as operators and senders do, and stops it. */
async function used() {
  const platform = await testPlatform();
  const { svc, folder, service } = platform;
  await cp(PROJECT, folder, { recursive: true });
  await writeFile(join(folder, 'plugins/toy/toy.js'), KEEPER);
  await svc('up', '-d');
  const { json } = await svc('webhooks', 'provision', 'toy', 'ping');
  /** Sends a signed delivery and returns the status of the answer. */
  const send = async (payload: object): Promise<number> => {
    const { url } = await service('gateway');
    const body = JSON.stringify(payload);
    const signature = createHmac('sha256', json.result.secret).update(body).digest('hex');
    const headers = {
      'content-type': 'application/json',
      'x-svc-namespace': 'default',
      'x-signature': `sha256=${signature}`,
    };
    return (await fetch(`${url}/webhooks/toy/ping`, { method: 'POST', headers, body })).status;
  };
  for (let n = 0; n < 20; n++) expect(await send({ n, filler: 'x'.repeat(n * 1000) })).toBe(200);
  for (const args of [
    ['webhooks', 'pause', 'toy', 'ping'],
    ['workflows', 'run', 'hold'],
    ['workflows', 'run', 'hold'],
    ['jobs', 'submit', 'toy/sweep'],
    ['clients', 'create', 'nightly'],
    ['tokens', 'mint', 'ci'],
    ['plugins', 'install', await writeGreeter(join(folder, 'greeter')), '--yes'],
  ])
    expect((await svc(...args)).code, args.join(' ')).toBe(0);
  const minted = (await svc('tokens', 'list')).json.result.items[0];
  await svc('tokens', 'revoke', minted.jti);
  const schedule = (await svc('schedules', 'list')).json.result.items[0];
  await svc('schedules', 'pause', schedule.id);
  return { ...platform, send };
}

interface Stores {
  gateway: GatewayStore;
  workflow: WorkflowStore;
  state: StateStore;
}

async function readAll({ gateway, workflow, state }: Stores, scope: string) {
  const deliveries = await gateway.inbox.after('default', 0, 100);
  const { runs } = await workflow.runs.list('default', { limit: 100 });
  return {
    deliveries: await Promise.all(deliveries.map(({ webhookId }) => gateway.inbox.find(webhookId))),
    secrets: await gateway.secrets.list('default'),
    clients: await gateway.clients.list(),
    revocations: await gateway.revocations.since(0, 100),
    pauses: await gateway.cache.scan('webhook-pause', { prefix: '', limit: 100 }),
    tokens: await gateway.mintedTokens.list(undefined, { now: 0, limit: 100 }),
    runs: await Promise.all(runs.map(({ seq }) => workflow.runs.load(seq))),
    events: await Promise.all(runs.map(({ seq }) => workflow.runs.events(seq, 0, 100))),
    schedules: await workflow.schedules.list('default'),
    state: await state.entries.scan(scope, { prefix: '', limit: 100 }),
  };
}

async function readFolder(dataDir: string, scope: string) {
  const options = { dataDir, ...OPTIONS };
  const stores = {
    gateway: await sqliteGatewayStore(options),
    workflow: await sqliteWorkflowStore(options),
    state: await sqliteStateStore(options),
  };
  const all = await readAll(stores, scope);
  for (const store of Object.values(stores)) await store.close();
  return all;
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'svc store copy' : POSTGRES_MISSING, () => {
  test('a used platform reads the same from PostgreSQL', { timeout: 120_000 }, async () => {
    const { svc, dataDir, folder, send } = await used();
    const url = await emptyPostgres();
    const running = await svc('store', 'copy', dataDir, url);
    expect([running.code, running.json.error.code, running.json.error.details.hint]).toEqual([
      1,
      'CONFLICT',
      'svc down',
    ]);
    const completed = async (): Promise<number> =>
      (await svc('events', 'stats')).json.result.byType['plugin.command.completed'];
    await expect.poll(completed).toBeGreaterThanOrEqual(20);
    const before = await completed();
    await svc('down');
    const unmigrated = await svc('store', 'copy', dataDir, url);
    expect([unmigrated.code, unmigrated.json.error.message]).toEqual([
      1,
      expect.stringContaining('svc migrate'),
    ]);
    await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ ...FREE_PORTS, store: { url } }));
    expect((await svc('migrate', '--yes')).code).toBe(0);

    const without = await emptyPostgres();
    await migrateDatabase(without);
    const partly = await svc('store', 'copy', dataDir, without, '--without-telemetry');
    expect(partly.json.result).toMatchObject({ left: ['telemetry.db'] });
    expect((await connect(without).sql('select from svc.event')).rows).toEqual([]);

    const copied = await svc('store', 'copy', dataDir, url);

    expect(copied.json.result).toMatchObject({ dataDir, left: [] });
    expect(copied.json.result.tables).toEqual(
      expect.arrayContaining([
        { table: 'delivery', rows: 20 },
        { table: 'run', rows: 3 },
        { table: 'schedule', rows: 1 },
        // The secret, and the key for stored headers.
        { table: 'webhook_secret', rows: 2 },
        { table: 'state_entry', rows: 1 },
        { table: 'plugin_lock', rows: 1 },
      ]),
    );
    const { rows } = await connect(url).sql<{ scope: string }>('select scope from svc.state_entry');
    const { scope } = rows[0]!;
    const stores = {
      gateway: postgresGatewayStore(connect(url), OPTIONS),
      workflow: postgresWorkflowStore(connect(url)),
      state: postgresStateStore(connect(url), {
        clock: systemClock,
        vectorIndex: threadedVectorIndex({ dataDir, clock: systemClock }),
      }),
    };
    const [source, copy] = [await readFolder(dataDir, scope), await readAll(stores, scope)];
    for (const name of Object.keys(source) as Array<keyof typeof source>)
      expect(copy[name], name).toEqual(source[name]);
    expect(source.state).toHaveLength(1);
    expect(source.pauses).toHaveLength(1);

    // Another node has neither the files nor the lock file.
    await rm(join(dataDir, 'plugins'), { recursive: true });
    await rm(join(dataDir, 'marketplace.lock.json'));
    expect((await svc('up', '-d')).code).toBe(0);
    await expect.poll(async () => (await svc('run', 'greeter', 'hello')).json.result).toBe('hello');
    const items = async (...args: string[]) => (await svc(...args)).json.result.items;
    expect(await items('webhooks', 'deliveries')).toHaveLength(20);
    expect(await items('schedules', 'list')).toMatchObject([{ paused: true }]);
    const waiting = await items('workflows', 'runs', '--status', 'waiting');
    expect(waiting).toHaveLength(2);
    expect((await svc('workflows', 'approve', waiting[0].id, 'main.gate')).code).toBe(0);
    await svc('webhooks', 'resume', 'toy', 'ping');
    expect(await send({ n: 20 })).toBe(200);
    expect(await items('webhooks', 'deliveries')).toHaveLength(21);
    await expect.poll(completed, { timeout: 10_000 }).toBeGreaterThan(before);
  });

  test('a folder without data, and a URL of another store, are refused', async () => {
    const { svc, folder } = await testPlatform();
    const missing = await svc('store', 'copy', join(folder, 'none'), 'postgres://127.0.0.1/none');
    expect([missing.code, missing.json.error.code]).toEqual([1, 'NOT_FOUND']);
    const other = await svc('store', 'copy', '.svc', 'mysql://127.0.0.1/none');
    expect([other.code, other.json.error.message]).toEqual([2, expect.stringContaining('postgres://')]);
  });
});
