import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { eventStats, listEvents, queryLogs } from '../../../src/contracts/index.ts';
import type { RestServices } from '../../../src/daemons/rest/services.ts';
import { instanceId } from '../../../src/kit/files/instance-id.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { AnalyticsWriter } from '../../../src/kit/telemetry/analytics.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { startTelemetryWriter, type TelemetryWriter } from '../../../src/store/telemetry/writer.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { migrateDatabase, migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS, PostgresServer } from '../../support/postgres.ts';
import { asCaller, readRecords, startRest, type TestRest } from './support.ts';

const RETENTION = { logsDays: 7, analyticsDays: 400, telemetryMaxBytes: 1e9 };
const PROGRAM = fileURLToPath(new URL('../../store/telemetry/write-records.ts', import.meta.url));

/** The parts of a node that write and read telemetry. */
interface Node {
  rest: TestRest;
  writer: TelemetryWriter;
  dropped: Array<[count: number, failure: string | undefined]>;
}

async function startNode(url: string): Promise<Node> {
  const dropped: Node['dropped'] = [];
  const dataDir = await tempDir();
  const writer = startTelemetryWriter({
    dataDir,
    node: instanceId(dataDir, {}, systemRandom()),
    postgresUrl: url,
    retention: RETENTION,
    onDropped: (...args) => dropped.push(args),
  });
  atEnd(() => writer.close());
  return { rest: await startRest({ config: { store: { url } }, dataDir }), writer, dropped };
}

function push({ writer }: Pick<Node, 'writer'>, message: string, fields: object = {}): void {
  const record = { level: 'info', time: Date.now(), tenantId: 'acme', message, ...fields };
  writer.push('gateway', Buffer.from(`${JSON.stringify(record)}\n`));
}

/** Stores an event as a service of the node does. */
async function track({ writer }: Node, type: string): Promise<void> {
  const output = { write: (line: string) => writer.push('rest', Buffer.from(line)), flush: () => {} };
  const analytics = new AnalyticsWriter({ output, clock: systemClock, random: systemRandom() });
  analytics.track(type, { tenantId: 'acme', runId: 'run1', actor: { type: 'user', id: 'ada' } });
  await writer.flush();
}

async function messagesOf({ rest }: Node, query: object = {}): Promise<string[]> {
  const { items } = await rest.call(queryLogs, { query: { limit: 1000, ...query } }, 'acme');
  return items.map(({ message }) => message).toSorted();
}

const follow = ({ rest }: Node, path: string, query: string, headers: object = {}): Promise<Response> =>
  rest.fetch(`/api/v1/${path}?follow=1${query}`, { headers: { ...asCaller('ci', 'acme'), ...headers } });

/** Starts a node in another process, and returns the numbers of the records that it has stored. */
function startWriting(url: string, name: string): { child: ChildProcess; stored: number[] } {
  const child = spawn(process.execPath, [PROGRAM, url, name], { stdio: ['ignore', 'pipe', 'inherit'] });
  atEnd(() => child.kill('SIGKILL'));
  const stored: number[] = [];
  createInterface({ input: child.stdout! }).on('line', (line) => stored.push(Number(line)));
  return { child, stored };
}

/** Returns the numbers of the records of a node in another process. */
async function storedBy({ rest }: Node, name: string): Promise<number[]> {
  const { telemetry } = rest.services as RestServices;
  const numbers: number[] = [];
  for (let last = 0; ; ) {
    const after = await telemetry.logsAfter({ tenantId: name }, last, 1000);
    numbers.push(...after.map(({ record }) => Number(record.message.split(' ')[1])));
    if (after.length === 0) return numbers.toSorted((a, b) => a - b);
    last = after.at(-1)!.id;
  }
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, n) => n + 1);

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'two nodes on PostgreSQL' : POSTGRES_MISSING, () => {
  test('either node finds and streams the records and events of both', async () => {
    const url = await migratedPostgres();
    const [a, b] = [await startNode(url), await startNode(url)];
    push(a, 'from a', { requestId: 'r1', level: 'warn' });
    push(b, 'from b', { requestId: 'r1', traceId: 't1' });
    await Promise.all([a.writer.flush(), b.writer.flush()]);
    await track(a, 'order.paid');
    await track(b, 'order.paid');
    for (const node of [a, b]) {
      expect(await messagesOf(node, { requestId: 'r1' })).toEqual(['from a', 'from b']);
      expect(await messagesOf(node, { search: 'from', level: 'warn' })).toEqual(['from a']);
      expect((await node.rest.call(listEvents, { query: { type: 'order.paid' } }, 'acme')).total).toBe(2);
      const stats = await node.rest.call(eventStats, { query: {} }, 'acme');
      expect(stats).toMatchObject({ total: 2, byActor: { 'user:ada': 2 } });
    }

    const streams = await Promise.all([a, b].map((node) => follow(node, 'logs', '&limit=0')));
    const events = await Promise.all([a, b].map((node) => follow(node, 'analytics/events', '&limit=0')));
    push(a, 'live from a');
    push(b, 'live from b');
    await Promise.all([track(a, 'a.done'), track(b, 'b.done')]);
    const seen = await Promise.all(streams.map((stream) => readRecords(stream, 2)));
    for (const records of seen)
      expect(records.map(({ message }) => message).toSorted()).toEqual(['live from a', 'live from b']);
    for (const stream of events)
      expect((await readRecords(stream, 2)).map(({ type }) => type).toSorted()).toEqual(['a.done', 'b.done']);

    // A client that was connected to a continues on b after the first record.
    const [first, second] = seen[0]!;
    const resumed = await follow(b, 'logs', '', { 'last-event-id': first!.id });
    expect((await readRecords(resumed, 1))[0]).toEqual(second);
    expect(await (await a.rest.fetch('/metrics')).text()).toMatch(
      /svc_telemetry_partitions\{service="rest"\} \d+/,
    );
  });

  test('each node counts its own records, so the sum over all nodes counts none twice', async () => {
    const url = await migratedPostgres();
    const nodes = [await startNode(url), await startNode(url)];
    for (const [index, node] of nodes.entries()) {
      for (let n = 0; n <= index; n++) push(node, `record ${n}`);
      await node.writer.flush();
    }
    const kept = nodes.map(async ({ rest }) => {
      const text = await (await rest.fetch('/metrics')).text();
      return /svc_telemetry_records_total\{service="rest",kind="logs",outcome="kept"\} (\d+)/.exec(text)![1];
    });
    expect(await Promise.all(kept)).toEqual(['1', '2']);
  });

  test('a killed node loses no stored record, and the other node continues', {
    timeout: 60_000,
  }, async () => {
    const url = await migratedPostgres();
    const reader = await startNode(url);
    const [killed, other] = [startWriting(url, 'killed'), startWriting(url, 'other')];
    await expect.poll(() => killed.stored.length, { timeout: 30_000 }).toBeGreaterThan(3);
    killed.child.kill('SIGKILL');
    await once(killed.child, 'close');
    const before = other.stored.length;
    await expect.poll(() => other.stored.length, { timeout: 30_000 }).toBeGreaterThan(before + 3);
    other.child.kill('SIGKILL');
    await once(other.child, 'close');
    for (const { name, stored } of [
      { name: 'killed', ...killed },
      { name: 'other', ...other },
    ]) {
      const found = await storedBy(reader, name);
      expect(found.slice(0, stored.length)).toEqual(upTo(stored.length));
      expect(found.length - stored.length).toBeLessThanOrEqual(1);
    }
  });

  test('a crash of the server loses only records that were not flushed, and repeats no id', {
    timeout: 90_000,
  }, async () => {
    const server = await PostgresServer.start({ durable: true });
    atEnd(() => server.remove());
    await migrateDatabase(server.url());
    const node = await startNode(server.url());
    const writing = startWriting(server.url(), 'other');
    await expect.poll(() => writing.stored.length, { timeout: 30_000 }).toBeGreaterThan(3);
    const committed = writing.stored.length;
    const { rows } = await server.run('select pg_current_wal_insert_lsn() as lsn');
    await expect
      .poll(
        async () =>
          (await server.run(`select pg_current_wal_flush_lsn() >= '${rows[0].lsn}' as done`)).rows[0].done,
      )
      .toBe(true);
    const highest = async () =>
      Number((await server.run('select last_id from svc.telemetry_position')).rows[0].last_id);
    const before = await highest();
    await server.stop('immediate');
    await server.up();
    const [present, resumedAt] = [await storedBy(node, 'other'), writing.stored.length];
    expect(present.slice(0, committed)).toEqual(upTo(committed));
    await expect.poll(() => writing.stored.length, { timeout: 30_000 }).toBeGreaterThan(resumedAt + 3);
    expect(await highest()).toBeGreaterThan(before);
    writing.child.kill('SIGKILL');
    await once(writing.child, 'close');
    const found = await storedBy(node, 'other');
    expect(found).toEqual([...new Set(found)]);
    expect(found).toContain(writing.stored.length);
  });

  test('while the server is away, a node keeps the newest records, and counts those it drops', {
    timeout: 90_000,
  }, async () => {
    const server = await PostgresServer.start();
    atEnd(() => server.remove());
    await migrateDatabase(server.url());
    const node = await startNode(server.url());
    await server.stop();
    const refused = await node.rest.fetch('/api/v1/logs', { headers: asCaller('ci', 'acme') });
    expect(refused.status).toBe(503);

    const filler = 'x'.repeat(4000);
    for (let n = 0; n < 4000; n++) push(node, `record ${n} ${filler}`);
    await expect.poll(() => node.dropped.length, { timeout: 30_000 }).toBeGreaterThan(0);
    push(node, 'newest');
    await server.up();
    await node.writer.flush();
    push(node, 'later');
    await node.writer.flush();

    const { items, total, dropped } = await node.rest.call(queryLogs, { query: { limit: 2 } }, 'acme');
    expect(items.map(({ message }) => message)).toEqual(['later', 'newest']);
    expect(dropped.logs).toBeGreaterThan(0);
    expect(total + dropped.logs).toBe(4002);
    await node.writer.close();
    expect(node.dropped.reduce((sum, [count]) => sum + count, 0)).toBe(dropped.logs);
    expect(node.dropped[0]![1]).toContain('cannot be reached');
    const metrics = await (await node.rest.fetch('/metrics')).text();
    expect(metrics).toContain(
      `svc_telemetry_records_total{service="rest",kind="logs",outcome="dropped"} ${dropped.logs}`,
    );
  });
});
