import type { SignatureAuth } from '../../contracts/index.ts';
import type { SignatureFault } from './signed-request.ts';

type Unit = NonNullable<SignatureAuth['timestamp']>['unit'];

const DIGITS = { s: /^[1-9][0-9]{0,11}$/, ms: /^[1-9][0-9]{0,14}$/ };
/** RFC 3339 with a time zone. `Date.parse` accepts more forms, such as local times. */
const ISO =
  /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})$/;

/**
 * Returns the age of a timestamp in seconds. Returns a fault for a malformed timestamp, or if the difference to the
 * current time exceeds the tolerance. Numbers must be whole, without sign, spaces or leading zeros.
 */
export function ageOf(
  text: string | undefined,
  unit: Unit,
  nowMs: number,
  toleranceSeconds: number,
): { fault?: SignatureFault; skewSeconds?: number } {
  const seconds = text === undefined ? undefined : secondsOf(text, unit);
  if (seconds === undefined) return { fault: 'timestamp_malformed' };
  const skewSeconds = Math.floor(nowMs / 1000) - seconds;
  return Math.abs(skewSeconds) <= toleranceSeconds
    ? { skewSeconds }
    : { skewSeconds, fault: 'timestamp_outside_tolerance' };
}

function secondsOf(text: string, unit: Unit): number | undefined {
  if (unit !== 'iso') {
    if (!DIGITS[unit].test(text)) return undefined;
    return unit === 's' ? Number(text) : Math.floor(Number(text) / 1000);
  }
  const ms = ISO.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}

/** Returns a timestamp as a sender writes it. */
export function timestampText(nowMs: number, unit: Unit): string {
  if (unit === 'iso') return new Date(nowMs).toISOString();
  return String(unit === 's' ? Math.floor(nowMs / 1000) : nowMs);
}
