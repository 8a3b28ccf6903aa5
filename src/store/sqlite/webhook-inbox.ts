import type { DeliveryStatus } from '../../contracts/index.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../kit/logger.ts';
import type { DeliveryEnd, NewDelivery, WebhookInbox } from '../ports/index.ts';
import { startCommitter } from './committer/committer.ts';
import type { Step } from './committer/protocol.ts';
import type { Database } from './database.ts';
import { deliveryRows, finishStep, insertSteps } from './delivery-rows.ts';
import { DELIVERY_STATEMENTS, SQL } from './delivery-statements.ts';
import { createMarkers, type MarkerOptions } from './markers.ts';
import { createNotebook } from './notebook.ts';

export interface SqliteInboxDeps extends MarkerOptions {
  clock: Clock;
  logger: Logger;
}

/** Deliveries and their markers, written together by a thread that commits. @spec Webhook delivery */
export function sqliteWebhookInbox(
  db: Database,
  { clock, logger, ...options }: SqliteInboxDeps,
): WebhookInbox & { close(): Promise<void> } {
  const committer = startCommitter({ file: db.file, statements: DELIVERY_STATEMENTS });
  const rows = deliveryRows(db);
  const markers = createMarkers(db, committer, clock, options);
  /** Up to this position no delivery that had ended kept its body. */
  let bodilessUntil = 0;
  const notes = createNotebook({
    clock,
    logger,
    async write(noted) {
      const units = noted.map(({ delivery, end }) => insertSteps(delivery, end, null));
      await Promise.all(units.map((steps) => committer.write({ guarded: false, steps })));
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
      await committer.write({ guarded: false, steps: insertSteps(delivery, state, null) });
      return 'begun';
    }
    const kind = status === 'running' ? 'pending' : 'done';
    return markers.claim(claim, kind, delivery.webhookId, (digest) => insertSteps(delivery, state, digest));
  }

  async function pruneBodies(limit: number): Promise<number> {
    const positions = await db.read(() => rows.withBodies(bodilessUntil, limit));
    if (positions.length === 0) {
      if (bodilessUntil === 0) return 0;
      // What was still to do when we came by may have ended since.
      bodilessUntil = 0;
      return pruneBodies(limit);
    }
    const which = JSON.stringify(positions);
    await committer.write({
      guarded: false,
      steps: [
        [SQL.dropSmallBodies, [which]],
        [SQL.dropLargeBodies, [which]],
      ],
    });
    bodilessUntil = positions.at(-1)!;
    return positions.length;
  }

  const changes = async (step: Step): Promise<number> =>
    (await committer.write({ guarded: false, steps: [step] })).changes;

  return {
    seen: (markerKey, now) => markers.find(markerKey, now),
    begin: (delivery, marker) => insert(delivery, 'running', '', marker),
    accept: (delivery, marker, steps) => insert(delivery, 'accepted', steps, marker),
    async finish(webhookId, end, marker) {
      const ending = marker ? markers.finish(marker.key, marker.expiresAt, webhookId) : [];
      await committer.write({ guarded: false, steps: [finishStep(webhookId, end), ...ending] });
    },
    async replay(delivery, steps, original) {
      const state = { status: 'accepted', steps, httpStatus: null, outcome: null, durationMs: null } as const;
      const link: Step = [SQL.replayed, [delivery.webhookId, original.webhookId]];
      await committer.write({
        guarded: false,
        steps: [...insertSteps(delivery, state, original.marker), link],
      });
    },
    settleMarker: (marker, expiresAt) => markers.settle(marker, expiresAt),
    isSettled: async (marker, now) => (await markers.findDigest(marker, now)) === 'done',
    note: (delivery, end: DeliveryEnd) => notes.add({ delivery, end }),
    unfinished: (limit, after = 0) => db.read(() => rows.unfinished(limit, after)),
    async interrupt(which) {
      const until = which?.receivedUntil ?? Number.MAX_SAFE_INTEGER;
      const except = JSON.stringify(which?.except ?? []);
      await changes(which ? [SQL.releasePendingOf, [until, except, except]] : [SQL.releasePending, []]);
      return changes([SQL.interrupt, [until, except]]);
    },
    async find(webhookId) {
      await notes.flush();
      return db.read(() => rows.find(webhookId));
    },
    async list(namespaceId, options) {
      await notes.flush();
      return db.read(() => rows.list(namespaceId, options));
    },
    after: (namespaceId, position, limit) => db.read(() => rows.after(namespaceId, position, limit)),
    ended: (namespaceId, positions) => db.read(() => rows.ended(namespaceId, positions)),
    latest: () => db.read(() => rows.latest()),
    async prune({ receivedBefore, now, limit }) {
      const deliveries = await changes([SQL.pruneOld, [receivedBefore, limit]]);
      return deliveries + (await markers.prune(now, limit));
    },
    async shrink({ maxBytes, limit }) {
      if (usedBytes(db) <= maxBytes) return 0;
      return (await pruneBodies(limit)) || (await changes([SQL.pruneFacts, [limit]]));
    },
    flush: () => notes.flush(),
    async close() {
      await notes.flush();
      await committer.close();
    },
  };
}

/** What the file holds, without the pages that are free again. */
function usedBytes(db: Database): number {
  const value = (pragma: string): number =>
    (db.pragma(pragma) as Array<Record<string, number>>)[0]![pragma] as number;
  return (value('page_count') - value('freelist_count')) * value('page_size');
}
