import type { Clock } from '../../../../kit/time/clock.ts';
import type { ConnectionRecord, ConnectionStore } from '../../../../store/ports/index.ts';
import { lastErrorOf } from './connection-records.ts';
import { statusOf } from './connection-states.ts';

/** A connection that needs a person, for alerts. */
export interface TroubledConnection {
  namespaceId: string;
  name: string;
  /** `expiring`: the access token is about to expire, and is not or cannot be refreshed. */
  problem: 'failed' | 'expired' | 'expiring';
  /** Time of the failure or of the expiry. */
  at: number;
  reason: string | null;
}

/** Reports failed, expired and expiring connections of all namespaces from the store, so that no restart loses one. */
export class ConnectionHealth {
  readonly #deps: { store: Pick<ConnectionStore, 'troubled'>; clock: Clock };

  constructor(deps: { store: Pick<ConnectionStore, 'troubled'>; clock: Clock }) {
    this.#deps = deps;
  }

  /** `expiresWithinMs` is the remaining lifetime below which a token that is not refreshed counts as expiring. */
  async troubled(expiresWithinMs: number): Promise<TroubledConnection[]> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const records = await store.troubled(now + expiresWithinMs);
    return records.flatMap((record) => troubleOf(record, now) ?? []);
  }
}

function troubleOf(record: ConnectionRecord, now: number): TroubledConnection | undefined {
  const { namespaceId, name, expiresAt, failures, refreshAt, authorizedAt, createdAt } = record;
  const status = statusOf(record, now);
  const lastError = lastErrorOf(record);
  const found = { namespaceId, name, reason: lastError?.message ?? null };
  // Before the first authorization, nothing depends on a connection yet.
  if (status === 'failed')
    return authorizedAt === null
      ? undefined
      : { ...found, problem: 'failed', at: lastError?.at ?? createdAt };
  // A refresh is due, and did not fail. Tokens that expired while the gateway was down are refreshed at its start.
  if (expiresAt === null || (refreshAt !== null && failures === 0)) return undefined;
  return { ...found, problem: status === 'expired' ? 'expired' : 'expiring', at: expiresAt };
}
