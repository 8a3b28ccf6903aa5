import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../src/kit/security/random.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { days } from '../../src/kit/time/duration.ts';
import { type CopiedTable, copyStore } from '../../src/store/copy/copy-store.ts';
import { CopySource, prepareSource } from '../../src/store/copy/source.ts';
import {
  OBJECT_TABLES,
  OTHER_TABLES,
  PLUGIN_TABLES,
  RECORD_TABLES,
  TABLE_COPIES,
  VECTOR_TABLES,
} from '../../src/store/copy/tables.ts';
import type { GatewayStore, NewRun } from '../../src/store/ports/index.ts';
import type { TelemetryStore } from '../../src/store/ports/telemetry.ts';
import {
  migratePostgres,
  PostgresDatabase,
  postgresGatewayStore,
  postgresStateStore,
  postgresTelemetryStore,
  postgresWorkflowStore,
} from '../../src/store/postgres/index.ts';
import {
  sqliteGatewayStore,
  sqliteStateStore,
  sqliteWorkflowStore,
  threadedVectorIndex,
} from '../../src/store/sqlite/index.ts';
import { sqliteTelemetryStore } from '../../src/store/sqlite/telemetry/store.ts';
import { atEnd } from '../support/at-end.ts';
import { tempDir } from '../support/daemon.ts';
import { delivery, SUCCEEDED } from '../support/new-delivery.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { append, keptEvent, logRecord } from '../support/telemetry.ts';

const OPTIONS = { clock: systemClock, logger: silentLogger };
const QUOTA = { quotaBytes: 1e9, random: systemRandom() };
const QUEUE = { namespaceId: 'acme', queue: 'orders' };
const LATER = systemClock.now() + days(1);

function connect(url: string): PostgresDatabase {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  atEnd(() => database.close().catch(() => {}));
  return database;
}

async function migrated(): Promise<string> {
  const url = await emptyPostgres();
  await migratePostgres(connect(url));
  return url;
}

async function copy(folder: string, url: string, onTable: (table: CopiedTable) => void = () => {}) {
  await prepareSource(folder, OPTIONS);
  const source = new CopySource(folder);
  try {
    return await copyStore({ source, url, now: systemClock.now(), onTable });
  } finally {
    source.close();
  }
}

function newRun(id: string, more: Partial<NewRun> = {}): NewRun {
  return {
    ...{ id, kind: 'workflow', tenantId: 'acme', workflowId: 'nightly', definitionHash: 'h1', priority: 0 },
    ...{ runAt: null, deadlineAt: null, concurrencyKey: null, concurrencyLimit: null, trigger: 'manual' },
    ...{ parentId: null, parentStep: null, rerunOf: null, depth: 0, hostId: 'ci', requestId: 'r' },
    ...{
      traceId: 't',
      deliveryId: null,
      parentSpanId: null,
      labels: null,
      endTasks: null,
      handles: null,
      handlerDepth: 0,
      input: '{"a":1}',
      createdAt: 1000,
    },
    ...more,
  };
}
const START = { definition: { hash: 'h1', workflowId: 'nightly', body: '{}' }, day: '2030-01-01' };

/** Returns what the ports of a gateway tell about the data of `fill`. */
async function readGateway({ inbox, clients, revocations, cache, secrets, queues }: GatewayStore) {
  const after = await inbox.after('acme', 0, 1000);
  const whole = await Promise.all(after.map(({ webhookId }) => inbox.find(webhookId)));
  return {
    deliveries: whole,
    unfinished: (await inbox.unfinished(1000)).map(({ webhookId }) => webhookId),
    listed: await inbox.list('acme', { limit: 1000 }),
    markers: await Promise.all(['kept', 'open', 'none'].map((key) => inbox.seen(key, systemClock.now()))),
    clients: await clients.list(),
    revocations: await revocations.since(0, 1000),
    pause: await cache.get('webhook-pause', 'acme'),
    secrets: await secrets.list('acme'),
    queues: [await queues.counts(), await queues.settings(), await queues.list(QUEUE, { limit: 10 })],
    queueBody: Buffer.from((await queues.find(QUEUE, 'large'))!.body!).toString(),
  };
}

async function fillGateway(folder: string, shared: boolean): Promise<GatewayStore> {
  const store = await sqliteGatewayStore({ dataDir: folder, ...OPTIONS, shared });
  const { inbox } = store;
  const claim = (key: string) => ({ key, expiresAt: LATER });
  const large = delivery({ body: Buffer.alloc(2_000_000, 'ä'), requestId: 'nul\0byte' });
  await inbox.accept(large, claim('kept'), '[]');
  await inbox.finish(large.webhookId, SUCCEEDED, undefined);
  await inbox.begin(delivery({ mode: 'sync', body: Buffer.from('{"n":1}') }), claim('open'));
  await inbox.accept(delivery({ orderKey: 'k' }), undefined, '[]');
  const expired = delivery();
  await inbox.accept(expired, { key: 'none', expiresAt: 1 }, '[]');
  const record = (await inbox.find(large.webhookId))!;
  await inbox.replay(delivery({ origin: 'replay', replayOf: large.webhookId }), '[]', record);
  await store.cache.set('webhook-pause', 'acme', { since: 1 });
  await store.revocations.revokeToken('jti-1', LATER, 1);
  await store.revocations.revokeToken('jti-2', 5, 1);
  await store.revocations.prune(10);
  const client = { clientId: 'c', hostId: 'h', namespaceId: 'acme', name: 'n', secretHash: 's' };
  await store.clients.create({ ...client, createdAt: 1, revokedAt: null });
  const key = { namespaceId: 'acme', pluginId: 'p', event: 'e', instanceId: '' };
  for (const id of ['small', 'large']) {
    const body = Buffer.alloc(id === 'large' ? 10_000 : 10, 'x');
    const item = { ...QUEUE, id, deliveryId: null, headers: '[]', body, orderKey: 'k', receivedAt: 5 };
    await store.queues.put(item);
  }
  const lease = {
    ...QUEUE,
    maxAttempts: 3,
    concurrency: null,
    max: 1,
    maxBytes: 1,
    leaseMs: 1e9,
    token: 't',
  };
  await store.queues.lease(lease);
  await store.queues.configure(QUEUE, '{}');
  const rotation = { sealed: 'sealed', now: 1, graceEndsAt: LATER, namespaceInUrl: true };
  for (let n = 0; n < 2; n++) await store.secrets.rotate(key, rotation);
  return store;
}

const VECTORS = [
  {
    collection: 'many',
    items: Array.from({ length: 1200 }, (_, n) => ({ id: `v${n}`, vector: [1, n], metadata: { n } })),
  },
  { collection: 'few', items: [{ id: 'é', vector: [3, 0, 4], metadata: { text: 'a\0b' } }] },
];

async function fillOthers(folder: string): Promise<void> {
  const workflow = await sqliteWorkflowStore({ dataDir: folder, ...OPTIONS });
  const long = JSON.stringify('x'.repeat(5000));
  await workflow.runs.start(newRun('run_1', { input: long }), START);
  await workflow.runs.start(newRun('run_2'), START);
  const limits = { once: false, most: 10, mostBytes: 1e6 };
  await workflow.runs.deliver(2, { kind: 'signal', name: 'paid', payload: '{}', at: 1 }, limits);
  await workflow.close();
  const state = await sqliteStateStore({ dataDir: folder, ...OPTIONS });
  await state.entries.set('acme/p', 'key', { text: '\u0001 é' });
  const objects = state.openObjects(QUOTA);
  const scope = { tenant: 'acme', namespace: 'p' };
  await objects.write(scope, 'big', Buffer.alloc(600_000, 'b'));
  await objects.write(scope, 'empty', Buffer.alloc(0));
  for (const { collection, items } of VECTORS)
    for (let at = 0; at < items.length; at += 500)
      await state.vectors.upsert({ ...scope, collection }, items.slice(at, at + 500), 1e6);
  await state.vectors.delete({ ...scope, collection: 'many' }, ['v3']);
  await state.close();
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'store copy' : POSTGRES_MISSING, () => {
  test('the ports read the same data from the copy, also what a killed gateway left in its journal', async () => {
    const [folder, left] = [await tempDir(), await tempDir()];
    const gateway = await fillGateway(folder, false);
    await fillOthers(folder);
    // A copy of the files of a running gateway is what kill -9 leaves.
    await cp(folder, left, { recursive: true });
    const before = await readGateway(gateway);
    await gateway.close();

    const url = await migrated();
    const { tables } = await copy(left, url);

    const store = postgresGatewayStore(connect(url), OPTIONS);
    const expected = before.deliveries.map((one) => ({
      ...one,
      requestId: one!.requestId.replace('\0', '\ufffd'),
    }));
    const after = await readGateway(store);
    expect(after.deliveries).toEqual(expected);
    expect({ ...after, deliveries: [], listed: [] }).toEqual({ ...before, deliveries: [], listed: [] });
    expect(after.markers).toEqual(['done', 'pending', undefined]);
    expect(tables.find(({ table }) => table === 'delivery')).toEqual({ table: 'delivery', rows: 5 });

    const workflow = postgresWorkflowStore(connect(url));
    const run = (await workflow.runs.find('acme', 'run_1'))!;
    expect([run.input.length, run.status]).toEqual([5002, 'queued']);
    const signalled = (await workflow.runs.find('acme', 'run_2'))!;
    expect((await workflow.runs.load(signalled.seq))!.inbox).toEqual([
      expect.objectContaining({ kind: 'signal', name: 'paid', payload: '{}' }),
    ]);

    const state = postgresStateStore(connect(url), {
      clock: systemClock,
      vectorIndex: threadedVectorIndex({ dataDir: await tempDir(), clock: systemClock }),
    });
    expect((await state.entries.get('acme/p', 'key'))?.value).toEqual({ text: '\u0001 é' });
    const scope = { tenant: 'acme', namespace: 'p' };
    const objects = state.openObjects(QUOTA);
    expect((await objects.read(scope, 'big'))!.data).toEqual(Buffer.alloc(600_000, 'b'));
    expect((await objects.read(scope, 'empty'))!.data.byteLength).toBe(0);

    const many = { ...scope, collection: 'many' };
    const query = { vector: [1, 1100], limit: 1, filter: {} };
    expect(await state.vectors.search(many, query)).toMatchObject([{ id: 'v1100', metadata: { n: 1100 } }]);
    expect(await state.vectors.search(many, { ...query, filter: { n: 3 } })).toEqual([]);
    const few = { vector: [3, 0, 4], limit: 2, filter: {} };
    expect(await state.vectors.search({ ...scope, collection: 'few' }, few)).toEqual([
      { id: 'é', score: 1, metadata: { text: 'a\0b' } },
    ]);
    expect(tables).toContainEqual({ table: 'vector_item', rows: 1200 });
    // The copy counts 1,200 vectors against the quota.
    const more = [{ id: 'more', vector: [1, 2], metadata: {} }];
    await expect(state.vectors.upsert(many, more, 1200)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
    expect(await state.vectors.upsert(many, more, 1201)).toBe(1);
  });

  test('cursors that clients hold stay valid: all later numbers are higher', async () => {
    const folder = await tempDir();
    const gateway = await fillGateway(folder, true);
    // The highest numbers belong to deleted rows.
    await gateway.revocations.revokeToken('jti-3', 5, 1);
    await gateway.revocations.prune(10);
    const position = await gateway.inbox.latest();
    await gateway.close();
    await fillOthers(folder);
    const url = await migrated();
    await copy(folder, url);

    const database = connect(url);
    const store = postgresGatewayStore(database, OPTIONS);
    const next = delivery();
    await store.inbox.accept(next, undefined, '[]');
    expect((await store.inbox.after('acme', position, 10)).map(({ webhookId }) => webhookId)).toEqual([
      next.webhookId,
    ]);
    await store.revocations.revokeToken('jti-4', LATER, 1);
    const sequences = (await store.revocations.since(0, 10)).map(({ sequence }) => sequence);
    expect(sequences).toEqual([1, 4]);
    const workflow = postgresWorkflowStore(connect(url));
    const started = await workflow.runs.start(newRun('run_3'), START);
    expect(started).toMatchObject({ outcome: 'started', run: { seq: 3 } });
  });

  test('positions start above those of a database with more deliveries than transactions', async () => {
    const folder = await tempDir();
    const gateway = await fillGateway(folder, true);
    await gateway.close();
    const { default: Sqlite } = await import('better-sqlite3');
    const file = new Sqlite(join(folder, 'svc.db'));
    file.exec("update sqlite_sequence set seq = 1e13 where name = 'delivery'");
    file.close();
    const url = await migrated();
    await copy(folder, url);
    const { inbox } = postgresGatewayStore(connect(url), OPTIONS);
    await inbox.accept(delivery(), undefined, '[]');
    const [newest] = await inbox.after('acme', 1e13, 10);
    expect(newest!.position).toBeGreaterThan(1e13);
  });

  test('telemetry of earlier days is copied with its totals, ids and search', async () => {
    const folder = await tempDir();
    await (await fillGateway(folder, true)).close();
    const today = systemClock.now();
    const at = (n: number) => today - days(40) + n * days(1);
    const sqlite = await sqliteTelemetryStore({ dataDir: folder });
    for (let n = 0; n < 40; n++) {
      await append(
        sqlite,
        [
          logRecord({
            time: at(n),
            message: `record ${n} of café`,
            tenantId: 'acme',
            meta: { runId: 'r', n },
          }),
        ],
        [keptEvent(at(n), { actor: `user${n % 3}`.repeat(n === 7 ? 1000 : 1) })],
      );
    }
    const wrong = Array.from({ length: 1000 }, (_, n) => logRecord({ message: `${n}`, time: today }));
    await append(sqlite, [...wrong, logRecord({ time: 5, message: 'clock was wrong' })]);
    const page = { limit: 30, offset: 5 };
    const read = async (store: TelemetryStore) => ({
      logs: await store.logs({ tenantId: 'acme' }, page),
      found: await store.logs({ search: '7 cafe' }, page),
      events: await store.events({}, page),
      days: await store.daily({}),
      counts: await store.counts(),
      stream: await store.logsAfter({}, 30, 2000),
      newest: await store.latestEvents({}, 3),
    });
    const before = await read(sqlite);
    await sqlite.close();

    const url = await migrated();
    await copy(folder, url);
    const postgres = postgresTelemetryStore(connect(url));
    const after = await read(postgres);
    expect({ ...after, newest: after.newest.items }).toMatchObject({
      ...before,
      newest: before.newest.items,
      stream: before.stream.map(({ id }) => ({ id })),
    });
    expect(after.stream.at(-1)!.record).toMatchObject({ message: 'clock was wrong', time: at(0) });
    await append(postgres, [logRecord({ time: today, message: 'later' })]);
    const next = await postgres.logsAfter({}, after.newest.after, 10);
    expect(next.map(({ record }) => record.message)).toEqual(['later']);
  });

  test('an interrupted copy leaves nothing, and can be repeated', async () => {
    const folder = await tempDir();
    await (await fillGateway(folder, true)).close();
    await fillOthers(folder);
    const url = await migrated();
    const database = connect(url);
    const cut = (): void => {
      void database.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'svc-store-copy'",
      );
    };
    await expect(copy(folder, url, ({ table }) => table === 'delivery' && cut())).rejects.toMatchObject({
      code: 'STORE_ERROR',
    });
    const { rows } = await database.sql('select from svc.client');
    expect(rows).toEqual([]);
    const { tables } = await copy(folder, url);
    expect(tables).toContainEqual({ table: 'client', rows: 1 });
  });

  test('a target that is not migrated, or not empty, is refused', async () => {
    const folder = await tempDir();
    await (await fillGateway(folder, true)).close();
    await expect(copy(folder, await emptyPostgres())).rejects.toMatchObject({
      message: expect.stringContaining('svc migrate'),
    });
    const url = await migrated();
    await copy(folder, url);
    await expect(copy(folder, url)).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('is not empty: client'),
    });
  });

  test('every table of the PostgreSQL schema is copied, or known not to be', async () => {
    const database = connect(await migrated());
    const { rows } = await database.sql<{ name: string }>(
      "select relname as name from pg_class where relnamespace = 'svc'::regnamespace and relkind in ('r', 'p')",
    );
    const known = [
      ...TABLE_COPIES.map(({ target }) => target),
      ...OBJECT_TABLES,
      ...VECTOR_TABLES,
      ...PLUGIN_TABLES,
      ...RECORD_TABLES,
      ...OTHER_TABLES,
    ];
    expect(rows.map(({ name }) => name).toSorted()).toEqual(known.toSorted());
  });
});
