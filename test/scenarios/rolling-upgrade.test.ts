import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { CURRENT_SCHEMA } from '../../src/store/postgres/migrations.ts';
import { atEnd } from '../support/at-end.ts';
import { tempDir } from '../support/daemon.ts';
import { HAPROXY_MISSING, HAS_HAPROXY, startShippedHaproxy, untilServedBy } from '../support/haproxy.ts';
import { FREE_PORTS } from '../support/ports.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { buildRelease, type ReleaseOptions } from '../support/release.ts';
import { readEffects, UPGRADE_PLUGIN, UpgradeLoad } from '../support/upgrade-load.ts';
import { UpgradeNode } from '../support/upgrade-node.ts';

const PROJECT = fileURLToPath(new URL('../fixtures/projects/upgrade', import.meta.url));
const TOKEN = 'token-of-the-load';
const KEYS = `SVC_MASTER_KEY=${Buffer.alloc(32, 7).toString('base64url')}
GATEWAY_JWT_SECRET=${'j'.repeat(40)}
GATEWAY_INTERNAL_SECRET=${'i'.repeat(40)}
SVC_OPERATOR_CLIENT_ID=operator-of-the-test
SVC_OPERATOR_CLIENT_SECRET=${'o'.repeat(40)}
`;
const EXPANDED = CURRENT_SCHEMA + 1;
const CONTRACTED = CURRENT_SCHEMA + 2;
const MISSING = HAS_HAPROXY ? POSTGRES_MISSING : HAPROXY_MISSING;

/** A release with a column and a table that it writes, a new feed topic, and the contract migration of the column. */
const AFTER: ReleaseOptions = {
  version: '0.2.0',
  edits: {
    'src/store/postgres/migrations.ts': [
      [
        '];\n\n/** Newest schema version',
        `  { sql: 'alter table svc.run add column built_by text; create table svc.run_note (run_seq bigint primary key);', minVersion: 1 },
  { sql: "update svc.run set built_by = 'unknown' where built_by is null; alter table svc.run alter column built_by set not null;", minVersion: ${EXPANDED} },
];

/** Newest schema version`,
      ],
    ],
    'src/store/postgres/workflow/run-inserts.ts': [
      ['trigger_kind,\n  parent_id,', 'trigger_kind, built_by,\n  parent_id,'],
      ['    trigger_kind: run.trigger,', "    trigger_kind: run.trigger,\n    built_by: '0.2.0',"],
      [
        '  ), queued as (',
        '  ), noted as (insert into svc.run_note (run_seq) select seq from inserted\n  ), queued as (',
      ],
    ],
    'src/store/postgres/gateway/feed.ts': [
      [
        // biome-ignore lint/suspicious/noTemplateCurlyInString: The text of a source file.
        '${topic}, ${key}, ${now})`.execute',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: The text of a source file.
        "${topic}, ${key}, ${now}), (${kyselySql.raw(TRANSACTION_ID)}, 'later', '{}', ${now})`.execute",
      ],
    ],
  },
};

async function createProject(url: string): Promise<string> {
  const folder = await tempDir();
  await cp(PROJECT, folder, { recursive: true });
  await writeFile(join(folder, 'plugins/upgrade/effects.log'), '');
  await writeFile(join(folder, '.env'), KEYS, { mode: 0o600 });
  const gateway = {
    ...{ port: 0, publicUrl: 'http://svc.example' },
    staticTokens: { [TOKEN]: { hostId: 'load', namespaceId: 'default' } },
  };
  const config = {
    ...FREE_PORTS,
    ...{ store: { url }, cluster: { enabled: true }, gateway },
    ...{ adapters: { vectorStore: null }, plugins: ['./plugins/*'] },
  };
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config));
  return folder;
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  atEnd(() => client.end());
  return client;
}

describe.skipIf(!POSTGRES_PROGRAMS || !HAS_HAPROXY)(
  POSTGRES_PROGRAMS && HAS_HAPROXY ? 'a rolling upgrade' : MISSING,
  () => {
    test('replaces node after node under load: no request fails, no delivery or run is lost', async () => {
      const [before, after] = [await buildRelease({ version: '0.1.0' }), await buildRelease(AFTER)];
      const databaseUrl = await emptyPostgres();
      const project = await createProject(databaseUrl);
      const one = await UpgradeNode.create(project, before);
      const two = await UpgradeNode.create(project, before);
      expect((await one.svc('migrate', '--yes')).envelope.result.after).toBe(CURRENT_SCHEMA);
      await Promise.all([one.up(), two.up()]);
      const secretOf = async (event: string): Promise<string> =>
        (await one.svc('webhooks', 'provision', UPGRADE_PLUGIN, event)).envelope.result.secret;
      const secrets = { sync: await secretOf('sync'), async: await secretOf('async') };
      const proxy = await startShippedHaproxy([one.url, two.url]);
      await untilServedBy(proxy, 2);
      const load = new UpgradeLoad({ url: proxy, token: TOKEN, secrets });
      for (let n = 0; n < 10; n++) await load.start('long');
      const database = await connect(databaseUrl);

      const refused = await startRefused(after, project);
      expect(refused).toMatch(/svc migrate --yes/);
      two.use(after);
      const migrated = (await two.svc('migrate', '--yes')).envelope.result;
      two.use(before);
      expect(migrated).toMatchObject({
        before: CURRENT_SCHEMA,
        after: EXPANDED,
        waiting: { version: CONTRACTED },
      });

      await replace(one, after);
      await untilServedBy(proxy, 2);
      await mixedVersionsShow(one);
      await one.svc('webhooks', 'provision', UPGRADE_PLUGIN, 'sync');
      const held = (await one.svc('migrate', '--yes')).envelope.result;
      expect(held).toMatchObject({ before: EXPANDED, after: EXPANDED });
      expect(held.waiting.members.map(({ version }: { version: string }) => version)).toContain('0.1.0');

      await replace(two, after);
      await untilServedBy(proxy, 2);
      const sent = load.total;
      await expect.poll(() => load.total).toBeGreaterThan(sent + 200);
      await load.stop();
      expect(load.failures.slice(0, 20)).toEqual([]);

      await Promise.all(load.runs.long.map((id) => load.signal(id)));
      const unfinished = async () =>
        (await database.query("select id, status from svc.run where status <> 'succeeded'")).rows;
      await expect.poll(unfinished, { timeout: 60_000, interval: 500 }).toEqual([]);
      const pending = async () =>
        (await database.query("select webhook_id, status from svc.delivery where status <> 'succeeded'"))
          .rows;
      await expect.poll(pending, { timeout: 120_000, interval: 500 }).toEqual([]);
      const effects = await readEffects(project);
      expect(effects.deliveries).toEqual(new Map([...load.deliveries].map((id) => [id, 1])));
      const started = [...load.runs.short, ...load.runs.long];
      expect(effects.steps).toEqual(new Map(started.map((id) => [id, ['first', 'second', 'third']])));
      console.info(load.counts);

      const contracted = (await two.svc('migrate', '--yes')).envelope.result;
      expect(contracted).toMatchObject({ before: EXPANDED, after: CONTRACTED });
      expect(contracted).not.toHaveProperty('waiting');
      expect(await startRefused(before, project)).toMatch(/needs a newer version of svc/);
    }, 600_000);
  },
);

/** Starts a third node that must be refused. Returns the error message. */
async function startRefused(release: string, project: string): Promise<string> {
  const node = await UpgradeNode.create(project, release);
  const { exitCode, envelope } = await node.svc('up', '-d');
  expect(exitCode).not.toBe(0);
  return envelope.error.message;
}

async function replace(node: UpgradeNode, release: string): Promise<void> {
  expect((await node.down()).envelope.result.stopped).toBe(true);
  node.use(release);
  await node.up();
}

async function mixedVersionsShow(node: UpgradeNode): Promise<void> {
  const { members } = (await node.svc('status')).envelope.result;
  const schemas = Object.fromEntries(
    members.map(({ version, schema }: { version: string; schema: number }) => [version, schema]),
  );
  expect(schemas).toEqual({ '0.1.0': CURRENT_SCHEMA, '0.2.0': CONTRACTED });
  const { checks } = (await node.svc('doctor')).envelope.result;
  expect(checks.map(({ message }: { message: string }) => message)).toContain(
    'nodes run different versions: 0.1.0, 0.2.0',
  );
}
