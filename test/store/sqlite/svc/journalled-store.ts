import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished } from 'vitest';
import { type Logger, silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../../src/kit/time/clock.ts';
import { days } from '../../../../src/kit/time/duration.ts';
import type { DeliveryCursor, GatewayStore } from '../../../../src/store/ports/index.ts';
import { type SqliteStoreOptions, sqliteGatewayStore } from '../../../../src/store/sqlite/index.ts';
import { tempDir } from '../../../support/daemon.ts';
import { delivery } from '../../../support/new-delivery.ts';
import { startProgram } from '../programs/start.ts';

export const inAWeek = (): number => systemClock.now() + days(7);

/** The store of a gateway that is one process; closed with the test. */
export async function openStore(
  dataDir: string,
  logger: Logger = silentLogger,
  options: Partial<SqliteStoreOptions> = {},
): Promise<GatewayStore> {
  const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger, shared: false, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** A logger that keeps in `told` what it says as an error. */
export function errorsInto(told: string[]): Logger {
  return {
    ...silentLogger,
    error: (message) => void told.push(message),
    diagnostic: ({ level, message }) => void (level === 'error' && told.push(message)),
  };
}

/** Each delivery's status by its id. */
export async function records({ inbox }: GatewayStore): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let before: DeliveryCursor | undefined; ; ) {
    const { items, next } = await inbox.list('acme', { limit: 1000, before });
    for (const { webhookId, status } of items) found.set(webhookId, status);
    if (next === null) return found;
    before = next;
  }
}

/** Waits until so many deliveries can be listed, which fails while the database takes none. */
export async function expectFiled(store: GatewayStore, count: number): Promise<void> {
  const filed = () =>
    records(store)
      .then(({ size }) => size)
      .catch(() => 0);
  await expect.poll(filed, { timeout: 10_000 }).toBe(count);
}

export const journalOf = (dataDir: string): string => join(dataDir, 'inbox');

/** Makes `svc.db` refuse new deliveries, or what changes them, until the returned function is called. */
export function refuseRows(dataDir: string, change: 'insert' | 'update' = 'insert'): () => void {
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  onTestFinished(() => void disk.close());
  disk.exec(`create trigger no_room before ${change} on delivery begin select raise(abort, 'no room'); end`);
  return () => void disk.exec('drop trigger no_room');
}

export interface Acknowledged {
  accepted: Map<string, string>;
  ended: Set<string>;
}

/** What the program `accept-deliveries` printed. */
export function readLines(lines: readonly string[], into: Acknowledged): void {
  for (const line of lines) {
    const [what, webhookId, key] = line.split(' ') as [string, string, string];
    if (what === 'accepted') into.accepted.set(webhookId, key);
    else into.ended.add(webhookId);
  }
}

/** A data folder whose gateway was killed when it had acknowledged at least so much. */
export async function killedAfter(dataDir: string, lines: number): Promise<Acknowledged> {
  const writer = startProgram('accept-deliveries', dataDir, 'a');
  await writer.printed(lines);
  await writer.kill();
  const acknowledged: Acknowledged = { accepted: new Map(), ended: new Set() };
  readLines(writer.lines, acknowledged);
  return acknowledged;
}

/** Likewise, and nothing that it acknowledged is in the database: all of it is in the journal, however slow the machine is. */
export async function killedUnfiled(dataDir: string, lines: number): Promise<Acknowledged> {
  await (await openStore(dataDir)).close();
  const giveWay = refuseRows(dataDir);
  const acknowledged = await killedAfter(dataDir, lines);
  giveWay();
  return acknowledged;
}

export async function expectAll(store: GatewayStore, { accepted, ended }: Acknowledged): Promise<void> {
  const found = await records(store);
  expect([...accepted.keys()].filter((id) => !found.has(id))).toEqual([]);
  expect([...ended].filter((id) => found.get(id) !== 'succeeded')).toEqual([]);
  const some = [...accepted.values()].filter((_, n) => n % 97 === 0);
  for (const key of some) expect(await store.inbox.seen(key, systemClock.now())).toBe('done');
}

/** A data folder whose database has filed one delivery, and whose journal holds another that it has not. */
export async function withUnfiled(): Promise<{ dataDir: string; webhookId: string }> {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  await store.inbox.accept(delivery(), undefined, '');
  await records(store);
  const giveWay = refuseRows(dataDir);
  const one = delivery();
  await store.inbox.accept(one, undefined, '');
  await store.close();
  giveWay();
  return { dataDir, webhookId: one.webhookId };
}
