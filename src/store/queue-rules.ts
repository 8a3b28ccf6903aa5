import type { LeaseChange, LeaseResult, QueueItemStatus, QueueLimits } from './ports/queues.ts';

/**
 * Stored states of an item. The numbers order lists. An item is open while it is below `DEAD`. Of the open items of an
 * order key, all but one are blocked.
 */
export const QUEUE_STATE = { ready: 0, delayed: 1, blocked: 2, leased: 3, dead: 4, acked: 5 } as const;

/** The part of an item that leases change. */
export interface LeaseState {
  state: number;
  /** End of the delay or of the lease, or the time of the end; 0 for an item that can be leased now. In epoch ms. */
  dueAt: number;
  attempt: number;
  /** Random text of the last lease. It stays after the lease has expired, so that a late ack still counts. */
  token: string | null;
  lastError: string | null;
}

const FIRST_NACK_DELAY_MS = 1000;
const MAX_NACK_DELAY_MS = 300_000;

/** Error of items whose last lease expired. */
export const EXPIRED = 'The lease expired.';

/** Range of the stored states of a status. */
export const STATES_OF: Readonly<Record<QueueItemStatus, readonly [number, number]>> = {
  waiting: [QUEUE_STATE.ready, QUEUE_STATE.blocked],
  leased: [QUEUE_STATE.leased, QUEUE_STATE.leased],
  dead: [QUEUE_STATE.dead, QUEUE_STATE.dead],
  acked: [QUEUE_STATE.acked, QUEUE_STATE.acked],
};

export function statusOf(state: number): QueueItemStatus {
  if (state === QUEUE_STATE.leased) return 'leased';
  if (state === QUEUE_STATE.dead) return 'dead';
  return state === QUEUE_STATE.acked ? 'acked' : 'waiting';
}

/** Returns the delay of a failed item without a chosen delay: 1 s after the first attempt, doubled up to 5 minutes. */
export function nackDelayMs(attempt: number): number {
  return Math.min(FIRST_NACK_DELAY_MS * 2 ** (attempt - 1), MAX_NACK_DELAY_MS);
}

/** Returns the item after an expired lease, or undefined if the lease lasts. */
export function expire(item: LeaseState, now: number, { maxAttempts }: QueueLimits): LeaseState | undefined {
  if (item.state !== QUEUE_STATE.leased || item.dueAt > now) return undefined;
  return failed({ ...item, lastError: EXPIRED }, { now, dueAt: 0, maxAttempts });
}

/** Applies a change by the holder of the lease `token`. Returns the new state and the outcome. */
export function settle(
  item: LeaseState,
  token: string,
  change: LeaseChange,
  { now, maxAttempts }: { now: number; maxAttempts: number },
): LeaseResult & { next: LeaseState } {
  const lost = { outcome: 'lost', until: null, next: item } as const;
  if (item.token !== token) return lost;
  if (change.kind === 'ack') {
    if (item.state === QUEUE_STATE.acked) return { outcome: 'acked', until: null, next: item };
    // An item whose lease expired counts as handled, unless it was given out again.
    return { outcome: 'acked', until: null, next: { ...item, state: QUEUE_STATE.acked, dueAt: now } };
  }
  if (item.state !== QUEUE_STATE.leased || item.dueAt <= now) return lost;
  if (change.kind === 'extend') {
    const until = now + change.leaseMs;
    return { outcome: 'extended', until, next: { ...item, dueAt: until } };
  }
  const delayMs = change.delayMs ?? nackDelayMs(item.attempt);
  const dueAt = delayMs === 0 ? 0 : now + delayMs;
  const next = failed({ ...item, token: null, lastError: change.error }, { now, dueAt, maxAttempts });
  if (next.state === QUEUE_STATE.dead) return { outcome: 'dead', until: null, next };
  return { outcome: 'waiting', until: now + delayMs, next };
}

function failed(
  item: LeaseState,
  { now, dueAt, maxAttempts }: { now: number; dueAt: number; maxAttempts: number },
): LeaseState {
  if (item.attempt >= maxAttempts) return { ...item, state: QUEUE_STATE.dead, dueAt: now };
  return { ...item, state: dueAt === 0 ? QUEUE_STATE.ready : QUEUE_STATE.delayed, dueAt };
}

/** Returns whether the item belongs to the open items of its order key. */
export const isOpen = ({ state }: LeaseState): boolean => state < QUEUE_STATE.dead;

/** Returns the id of a lease: the position of the item, by which it is found, and the random text of the lease. */
export const leaseIdOf = (position: number, token: string): string => `${position.toString(36)}.${token}`;

export function parseLeaseId(leaseId: string): { position: number; token: string } | undefined {
  const [, place, token] = /^([0-9a-z]{1,11})\.([\w-]+)$/.exec(leaseId) ?? [];
  const position = Number.parseInt(place ?? '', 36);
  return Number.isSafeInteger(position) ? { position, token: token! } : undefined;
}
