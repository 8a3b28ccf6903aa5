import { ERROR_CLASSES } from '../../contracts/error-classes.ts';
import { isRecord } from '../../kit/data/is-record.ts';

/**
 * Error class and retry delay of a thrown value. Fields of the thrown error take precedence over values derived from
 * its code.
 */
export interface ThrownClass {
  errorClass?: string;
  retryAfterMs?: number;
}

const CLASSES: ReadonlySet<string> = new Set(ERROR_CLASSES);
/** Matches error codes of failed connections in Node and undici. */
const NETWORK = /^(?:ECONN|ENOTFOUND|EAI_|EPIPE|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_)/;
/**
 * Maximum number of nested causes to follow. The cause of a `fetch` error contains the error code, and libraries often
 * wrap the `fetch` error again.
 */
const MAX_CAUSES = 5;

/** Classifies an error that plugin code threw. The workflow service classifies errors with platform codes. */
export function classOfThrown(thrown: unknown): ThrownClass {
  const own = fieldsOf(thrown);
  const details = isRecord(own.details) ? own.details : {};
  const errorClass = saidClass(own.errorClass ?? details.errorClass) ?? knownClass(thrown);
  const pause = own.retryAfterMs ?? details.retryAfterMs;
  return {
    ...(errorClass === undefined ? {} : { errorClass }),
    ...(typeof pause === 'number' && Number.isFinite(pause) && pause > 0 ? { retryAfterMs: pause } : {}),
  };
}

function saidClass(said: unknown): string | undefined {
  return typeof said === 'string' && CLASSES.has(said) ? said : undefined;
}

function knownClass(thrown: unknown): string | undefined {
  let current = thrown;
  for (let depth = 0; depth <= MAX_CAUSES && current !== null && current !== undefined; depth++) {
    const { name, code, cause } = fieldsOf(current);
    if (name === 'TimeoutError') return 'timeout';
    if (typeof code === 'string' && NETWORK.test(code)) return 'network';
    current = cause;
  }
  return undefined;
}

function fieldsOf(thrown: unknown): Record<string, unknown> {
  return typeof thrown === 'object' && thrown !== null ? (thrown as Record<string, unknown>) : {};
}
