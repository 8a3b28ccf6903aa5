import { DISABLE_AFTER_DAYS } from '../../../../../contracts/index.ts';
import { days, hours } from '../../../../../kit/time/duration.ts';
import type { EndedAttempt } from '../../../../../store/ports/index.ts';
import type { SentAttempt } from '../message-sender.ts';

/** Continuous failures after which an endpoint is disabled. */
export const DISABLE_AFTER_MS = days(DISABLE_AFTER_DAYS);
const MAX_RETRY_AFTER_MS = hours(24);
/** Largest addition to a delay, so that the retries of many messages do not arrive at once. */
const JITTER = 0.2;
const GONE = 410;

export interface RetrySituation {
  result: Pick<SentAttempt, 'responseStatus' | 'retryAfter'>;
  /** Attempts since the publish or the last replay, with this one. */
  tries: number;
  /** Seconds between the attempts. */
  schedule: readonly number[];
  failingSince: number | null;
  now: number;
  /** Random number from 0 to 1. */
  fraction: number;
}

export interface RetryPlan extends Pick<EndedAttempt, 'status' | 'nextAttemptAt' | 'endedAt'> {
  failingSince: number | null;
  disable: 'gone' | 'failures' | null;
}

/** Decides what follows an attempt. Pure. @spec docs/messages.md "Retries" */
export function planAfter({
  result,
  tries,
  schedule,
  failingSince,
  now,
  fraction,
}: RetrySituation): RetryPlan {
  const { responseStatus: status, retryAfter } = result;
  if (isSuccess(status))
    return { status: 'succeeded', nextAttemptAt: null, endedAt: now, failingSince: null, disable: null };
  const since = failingSince ?? now;
  const disable = status === GONE ? 'gone' : now - since >= DISABLE_AFTER_MS ? 'failures' : null;
  const delay = schedule[tries - 1];
  if (disable !== null || delay === undefined)
    return { status: 'dead', nextAttemptAt: null, endedAt: now, failingSince: since, disable };
  const planned = delay * 1000 * (1 + JITTER * fraction);
  const wait = Math.max(planned, Math.min(retryAfterMs(retryAfter, now), MAX_RETRY_AFTER_MS));
  return {
    status: 'retrying',
    nextAttemptAt: now + Math.round(wait),
    endedAt: null,
    failingSince: since,
    disable: null,
  };
}

export const isSuccess = (status: number | null): boolean => status !== null && status >= 200 && status < 300;

/** Returns the delay of a Retry-After header, in seconds or as an HTTP date, or 0. */
export function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
