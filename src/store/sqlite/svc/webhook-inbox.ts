import type { DeliveryStatus } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { ClaimResult, MarkerClaim, NewDelivery, WebhookInbox } from '../../ports/index.ts';
import { type BufferedDelivery, WriteBuffer } from '../../write-buffer.ts';
import type { Database } from '../database.ts';
import type { Step } from './committer/protocol.ts';
import { DeliveryHours } from './deliveries/hour-counts.ts';
import { startListBackfill } from './deliveries/list-backfill.ts';
import { DeliveryPages } from './deliveries/list-pages.ts';
import { DeliveryRetention } from './deliveries/retention.ts';
import {
  type DeliveryRows,
  deliveryRows,
  finishStep,
  insertSteps,
  type RowState,
} from './deliveries/rows.ts';
import { SQL } from './deliveries/statements.ts';
import { TraceSearch } from './deliveries/trace-search.ts';
import { UnfinishedDeliveries } from './deliveries/unfinished.ts';
import { type MarkerOptions, Markers } from './idempotency-markers/markers.ts';
import { type InboxLog, type InboxLogOptions, openInboxLog } from './inbox-log.ts';
import { TextIndex } from './text-index/text-index.ts';

export interface SqliteInboxDeps extends Omit<MarkerOptions, 'logger'>, InboxLogOptions {
  clock: Clock;
  /**
   * Whether one or several processes use the database, `one` by default. A single process takes over all deliveries
   * that were running before its start.
   */
  members?: 'one' | 'several' | undefined;
}

export interface SqliteInbox extends WebhookInbox {
  /** Commits a write of any table of the database on the thread that also writes deliveries. */
  commit: InboxLog['commit'];
  close(): Promise<void>;
}

/**
 * Opens the store of deliveries and their idempotency markers. Throws STORE_ERROR if the file cannot be used. @spec
 * Webhook delivery
 */
export async function sqliteWebhookInbox(
  db: Database,
  { clock, logger, ...options }: SqliteInboxDeps,
): Promise<SqliteInbox> {
  const log = await openInboxLog(db, { logger, ...options });
  const rows = deliveryRows(db);
  const markers = new Markers(db, log, clock, { logger, ...options });
  const owns = options.recovers !== false;
  const texts = await TextIndex.open(db, { logger, owns });
  const pages = new DeliveryPages(db, rows, texts);
  const traces = new TraceSearch(db, rows, texts);
  const retention = new DeliveryRetention({ db, log, rows, texts, clock });
  const unfinished = new UnfinishedDeliveries(db, log, rows);
  const hours = new DeliveryHours(db, log);
  const stopBackfill = owns ? startListBackfill(db, log, logger) : async () => {};
  const buffer = new WriteBuffer({ clock, logger, write: (noted) => writeNotes(log, noted) });
  let closing: Promise<void> | undefined;

  async function close(): Promise<void> {
    await buffer.flush();
    await Promise.all([stopBackfill(), texts.close()]);
    await markers.close();
    await log.close();
  }

  return {
    ...acceptance(log, markers, unfinished),
    ...interruption(log, markers, options.members ?? 'one'),
    ...readers(db, log, rows, buffer),
    seen: (markerKey, now) => markers.find(markerKey, now),
    settleMarker: (marker, expiresAt) => markers.settle(marker, expiresAt),
    isSettled: async (marker, now) => (await markers.findDigest(marker, now)) === 'done',
    note: (delivery, end) => buffer.add({ delivery, end }),
    unfinished: (limit, after = 0) => unfinished.list(limit, after),
    async list(namespaceId, listing) {
      await buffer.flush();
      await log.settled();
      return pages.list(namespaceId, listing);
    },
    async ofTrace(namespaceId, traceId, limit) {
      await buffer.flush();
      await log.settled();
      return traces.find(namespaceId, traceId, limit);
    },
    async countByHour(namespaceId, range) {
      await buffer.flush();
      await log.settled();
      return hours.list(namespaceId, range);
    },
    async prune({ receivedBefore, now, limit }) {
      await hours.prune(now);
      const deliveries = await retention.prune(receivedBefore, limit);
      return deliveries + (await markers.prune(now, limit));
    },
    shrink: (limits) => retention.shrink(limits),
    get waitingBytes() {
      return log.waitingBytes;
    },
    get applyFailure() {
      return log.failure;
    },
    flush: () => buffer.flush(),
    commit: log.commit,
    close: () => (closing ??= close()),
  };
}

const newState = (status: DeliveryStatus, steps: string): RowState => ({
  status,
  steps,
  httpStatus: null,
  outcome: null,
  durationMs: null,
});

/** Methods that write a delivery, from its receipt to its end. */
function acceptance(
  log: InboxLog,
  markers: Markers,
  unfinished: UnfinishedDeliveries,
): Pick<WebhookInbox, 'begin' | 'accept' | 'handOver' | 'finish' | 'replay'> {
  async function insert(
    delivery: NewDelivery,
    state: RowState,
    claim: MarkerClaim | undefined,
  ): Promise<ClaimResult> {
    const { webhookId, replayOf } = delivery;
    const link: Step[] = replayOf === null ? [] : [[SQL.replayed, [webhookId, replayOf]]];
    const inserts = (digest: Uint8Array | null): Step[] => [...insertSteps(delivery, state, digest), ...link];
    if (!claim) {
      await log.append({ guarded: false, steps: inserts(null) });
      return 'begun';
    }
    const kind = state.status === 'running' ? 'pending' : 'done';
    return markers.claim(claim, kind, webhookId, inserts);
  }
  return {
    begin: (delivery, marker, owner) => insert(delivery, { ...newState('running', ''), owner }, marker),
    accept: (delivery, marker, steps) => insert(delivery, newState('accepted', steps), marker),
    async handOver(webhookId, steps, marker) {
      const done = marker ? markers.finish(marker.key, marker.expiresAt, webhookId) : [];
      const change: Step = [SQL.handOver, [steps, webhookId]];
      await log.append({ guarded: false, steps: [change, ...done] });
    },
    async finish(webhookId, end, marker) {
      const ending = marker ? markers.finish(marker.key, marker.expiresAt, webhookId) : [];
      const steps = [finishStep(webhookId, end), ...ending];
      unfinished.ended(webhookId, end, await log.append({ guarded: false, steps }));
    },
    async replay(delivery, steps, original) {
      const link: Step = [SQL.replayed, [delivery.webhookId, original.webhookId]];
      const inserts = insertSteps(delivery, newState('accepted', steps), original.marker);
      await log.append({ guarded: false, steps: [...inserts, link] });
    },
  };
}

function interruption(
  log: InboxLog,
  markers: Markers,
  members: 'one' | 'several',
): Pick<WebhookInbox, 'interrupt' | 'resume'> {
  const changes = async (step: Step): Promise<number> =>
    (await log.commit({ guarded: false, steps: [step] })).changes;
  return {
    async resume() {
      await log.settled();
      return changes([members === 'several' ? SQL.resumeEnded : SQL.resume, []]);
    },
    async interrupt() {
      await log.settled();
      if (members === 'several') {
        await changes([SQL.releasePendingOfEnded, []]);
        return changes([SQL.interruptEnded, []]);
      }
      markers.releasePending();
      return changes([SQL.interrupt, []]);
    },
  };
}

/** Queries that wait until all acknowledged deliveries are in the database. */
function readers(
  db: Database,
  log: InboxLog,
  rows: DeliveryRows,
  buffer: WriteBuffer,
): Pick<WebhookInbox, 'find' | 'after' | 'ended' | 'latest' | 'newest'> {
  async function readAll<T>(query: () => T): Promise<T> {
    await log.settled();
    return db.read(query);
  }
  return {
    async find(webhookId) {
      await buffer.flush();
      return readAll(() => rows.find(webhookId));
    },
    after: (namespaceId, position, limit) => readAll(() => rows.after(namespaceId, position, limit)),
    ended: (namespaceId, positions) => readAll(() => rows.ended(namespaceId, positions)),
    latest: () => readAll(() => rows.latest()),
    newest: () => readAll(() => rows.latest()),
  };
}

async function writeNotes(log: InboxLog, noted: readonly BufferedDelivery[]): Promise<void> {
  const units = noted.map(({ delivery, end }) => insertSteps(delivery, end, null));
  await Promise.all(units.map((steps) => log.append({ guarded: false, steps })));
}
