import { setImmediate as turn } from 'node:timers/promises';
import type { DeliveryStatus } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { DeliveryEnd, DeliveryRecord, NewDelivery, WebhookInbox } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { usedBytes } from '../used-bytes.ts';
import { createWriteBuffer } from '../write-buffer.ts';
import type { Step } from './committer/protocol.ts';
import { bodyRetention } from './deliveries/body-retention.ts';
import { startDeliveryFill } from './deliveries/list-fill.ts';
import { deliveryPages } from './deliveries/pages.ts';
import { deliveryPruning } from './deliveries/pruning.ts';
import { deliveryRows, finishStep, insertSteps } from './deliveries/rows.ts';
import { SQL } from './deliveries/statements.ts';
import { createUnappliedEnds } from './deliveries/unapplied-ends.ts';
import { type InboxLogOptions, openInboxLog } from './inbox-log.ts';
import { createMarkers, type MarkerOptions } from './markers/markers.ts';
import { openTextIndex } from './text-index/text-index.ts';

/** Maximum body bytes deleted per transaction: it must read all of their pages. */
const MAX_DROPPED_BYTES = 16 * 1024 * 1024;
/** Share of the store for records without a handler run; a quarter of it when the file is full. */
const UNHANDLED_SHARE = 0.1;
/** Such a record has no body, and its headers are truncated. */
const MAX_UNHANDLED_BYTES = 4096;
/**
 * Budget per event-loop turn for reading unfinished deliveries. Time is the real limit: rows on separate
 * pages are slow.
 */
const UNFINISHED = { ms: 5, bytes: 1024 * 1024 };

export interface SqliteInboxDeps extends Omit<MarkerOptions, 'logger'>, InboxLogOptions {
  clock: Clock;
}

/** Deliveries and their markers, written in one transaction. Throws STORE_ERROR. @spec Webhook delivery */
export async function sqliteWebhookInbox(
  db: Database,
  { clock, logger, ...options }: SqliteInboxDeps,
): Promise<WebhookInbox & { close(): Promise<void> }> {
  const log = await openInboxLog(db, { logger, ...options });
  const rows = deliveryRows(db);
  const markers = createMarkers(db, log, clock, { logger, ...options });
  const unappliedEnds = createUnappliedEnds(log);
  const owns = options.recovers !== false;
  const texts = await openTextIndex(db, { logger, owns });
  const pages = deliveryPages(db, rows, texts);
  const bodies = bodyRetention(db, log, rows);
  const pruning = deliveryPruning(db, log, rows, clock);
  const stopFilling = owns ? startDeliveryFill(db, log, logger) : async () => {};
  /**
   * Log position of the last `retrying` end: until it is applied, rows lack the status and the retry time.
   */
  let retriedAt = 0;
  let closing: Promise<void> | undefined;
  const buffer = createWriteBuffer({
    clock,
    logger,
    async write(noted) {
      const units = noted.map(({ delivery, end }) => insertSteps(delivery, end, null));
      await Promise.all(units.map((steps) => log.append({ guarded: false, steps })));
    },
  });

  async function insert(
    delivery: NewDelivery,
    status: DeliveryStatus,
    steps: string,
    claim: { key: string; expiresAt: number } | undefined,
  ) {
    const state = { status, steps, httpStatus: null, outcome: null, durationMs: null };
    if (!claim) {
      await log.append({ guarded: false, steps: insertSteps(delivery, state, null) });
      return 'begun';
    }
    const kind = status === 'running' ? 'pending' : 'done';
    return markers.claim(claim, kind, delivery.webhookId, (digest) => insertSteps(delivery, state, digest));
  }

  /** Number of excess records without a handler run: they have a separate share and are deleted first. */
  async function unhandledSurplus(maxBytes: number, isFull: boolean): Promise<number> {
    const share = Math.floor((maxBytes * UNHANDLED_SHARE) / MAX_UNHANDLED_BYTES);
    const kept = isFull ? Math.floor(share / 4) : share;
    return Math.max(0, (await db.read(() => rows.unhandled())) - kept);
  }

  /**
   * Applies only as much of the journal as needed: during a burst each read would otherwise apply all of it.
   */
  async function unfinishedRows(limit: number, after: number) {
    const last = log.added;
    for (;;) {
      const { applied } = log;
      if (retriedAt <= applied) {
        const page = await db.read(() => rows.unfinished(limit, after, UNFINISHED));
        if (!page.isAll || applied >= last) return page;
      }
      await log.progress(applied);
    }
  }

  /** Sees every acknowledged delivery. */
  async function readAll<T>(query: () => T): Promise<T> {
    await log.settled();
    return db.read(query);
  }

  async function close(): Promise<void> {
    await buffer.flush();
    await Promise.all([stopFilling(), texts.close()]);
    await markers.close();
    await log.close();
  }

  const changes = async (step: Step): Promise<number> =>
    (await log.commit({ guarded: false, steps: [step] })).changes;

  return {
    seen: (markerKey, now) => markers.find(markerKey, now),
    begin: (delivery, marker) => insert(delivery, 'running', '', marker),
    accept: (delivery, marker, steps) => insert(delivery, 'accepted', steps, marker),
    async finish(webhookId, end, marker) {
      const ending = marker ? markers.finish(marker.key, marker.expiresAt, webhookId) : [];
      const steps = [finishStep(webhookId, end), ...ending];
      const place = await log.append({ guarded: false, steps });
      unappliedEnds.add(webhookId, place);
      if (end.status === 'retrying') retriedAt = place;
    },
    async replay(delivery, steps, original) {
      const state = { status: 'accepted', steps, httpStatus: null, outcome: null, durationMs: null } as const;
      const link: Step = [SQL.replayed, [delivery.webhookId, original.webhookId]];
      await log.append({
        guarded: false,
        steps: [...insertSteps(delivery, state, original.marker), link],
      });
    },
    settleMarker: (marker, expiresAt) => markers.settle(marker, expiresAt),
    isSettled: async (marker, now) => (await markers.findDigest(marker, now)) === 'done',
    note: (delivery, end: DeliveryEnd) => buffer.add({ delivery, end }),
    async unfinished(limit, after = 0) {
      const found: DeliveryRecord[] = [];
      for (let from = after; found.length < limit; ) {
        const { records, isAll } = await unfinishedRows(limit - found.length, from);
        found.push(...records.filter(({ webhookId }) => !unappliedEnds.has(webhookId)));
        // Yields between pages.
        await turn();
        if (isAll) break;
        from = records.at(-1)!.position;
      }
      return found;
    },
    async interrupt(which) {
      const until = which?.receivedUntil ?? Number.MAX_SAFE_INTEGER;
      const except = JSON.stringify(which?.except ?? []);
      await log.settled();
      if (which) await changes([SQL.releasePendingOf, [until, except, except]]);
      else markers.releasePending();
      return changes([SQL.interrupt, [until, except]]);
    },
    async find(webhookId) {
      await buffer.flush();
      return readAll(() => rows.find(webhookId));
    },
    async list(namespaceId, options) {
      await buffer.flush();
      await log.settled();
      return pages.list(namespaceId, options);
    },
    after: (namespaceId, position, limit) => readAll(() => rows.after(namespaceId, position, limit)),
    ended: (namespaceId, positions) => readAll(() => rows.ended(namespaceId, positions)),
    latest: () => readAll(() => rows.latest()),
    async prune({ receivedBefore, now, limit }) {
      const deliveries = await pruning.old(receivedBefore, limit);
      return deliveries + (await markers.prune(now, limit));
    },
    async shrink({ maxBytes, limit }) {
      const excess = usedBytes(db) + (await texts.bytes(bodies.bodilessUntil)) - maxBytes;
      const surplus = await unhandledSurplus(maxBytes, excess > 0);
      if (surplus > 0) return changes([SQL.pruneUnhandled, [Math.min(limit, surplus)]]);
      if (excess <= 0) return 0;
      // Otherwise records would be deleted while deletable bodies are still in the journal.
      await log.settled();
      const bytes = Math.min(excess, MAX_DROPPED_BYTES);
      return (await bodies.drop(bytes, limit)) || (await pruning.ended(limit));
    },
    get waitingBytes() {
      return log.waitingBytes;
    },
    get applyFailure() {
      return log.failure;
    },
    flush: () => buffer.flush(),
    close: () => (closing ??= close()),
  };
}
