import { hash } from 'node:crypto';
import type { Clock } from '../../kit/clock.ts';
import type { ClaimResult, MarkerClaim, MarkerState } from '../ports/index.ts';
import type { Database } from './database.ts';

/** Half of SHA-256: forging the marker of somebody else's delivery takes a second preimage of 128 bits. */
const DIGEST_BYTES = 16;

function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer').subarray(0, DIGEST_BYTES);
}

/** The statements of the `delivery_marker` table; to be called inside `db.read` and `db.write`. @spec Idempotency window */
export function sqliteMarkers(db: Database, clock: Clock) {
  const sql = statements(db);
  return {
    find: (key: string, now: number) => sql.find.get({ digest: digestOf(key), now })?.state,

    /** Of racing deliveries one takes a free or lapsed marker; the others learn its state. */
    claim(marker: MarkerClaim | undefined, state: MarkerState, webhookId: string): ClaimResult {
      if (!marker) return 'begun';
      const [digest, now] = [digestOf(marker.key), clock.now()];
      const claimed = sql.claim.run({ digest, now, state, webhookId, expiresAt: marker.expiresAt });
      return claimed.changes === 1 ? 'begun' : sql.find.get({ digest, now })!.state;
    },

    /** `expiresAt` null: the delivery failed, and gives up the marker if it is still the one that holds it. */
    finish(key: string, expiresAt: number | null, webhookId: string): void {
      const digest = digestOf(key);
      if (expiresAt === null) sql.release.run({ digest, webhookId });
      else sql.keep.run({ digest, webhookId, expiresAt });
    },

    prune: (now: number, limit: number) => sql.prune.run({ now, limit }).changes,
  };
}

function statements(db: Database) {
  type Marker = { digest: Buffer; webhookId: string; expiresAt: number };
  const insert = 'insert into delivery_marker (digest, webhook_id, state, expires_at)';
  const replace = `on conflict (digest) do update set
    webhook_id = excluded.webhook_id, state = excluded.state, expires_at = excluded.expires_at`;
  return {
    find: db.prepare<[{ digest: Buffer; now: number }], { state: MarkerState }>(`
      select state from delivery_marker where digest = :digest and expires_at > :now`),
    claim: db.prepare<[Marker & { state: MarkerState; now: number }]>(`
      ${insert} values (:digest, :webhookId, :state, :expiresAt)
      ${replace} where delivery_marker.expires_at <= :now`),
    keep: db.prepare<[Marker]>(`${insert} values (:digest, :webhookId, 'done', :expiresAt) ${replace}`),
    release: db.prepare<[{ digest: Buffer; webhookId: string }]>(`
      delete from delivery_marker where digest = :digest and webhook_id = :webhookId`),
    prune: db.prepare<[{ now: number; limit: number }]>(`
      delete from delivery_marker where digest in (
        select digest from delivery_marker where expires_at <= :now order by expires_at limit :limit)`),
  };
}
