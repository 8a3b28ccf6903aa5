import { createHash } from 'node:crypto';
import { END_KEY_PREFIX } from '../../../../contracts/index.ts';
import { canonicalJson } from '../../../../kit/data/json.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, KeyedRun, RunRecord } from '../../../../store/ports/index.ts';

/**
 * Start request as sent by the client. Changed definitions thus do not affect the comparison with a repeat. `retry` and
 * `timeoutMs` of a job are excluded, because neither changes the work.
 */
export interface KeyedRequest {
  kind: RunRecord['kind'];
  /** Id of a registered workflow, or the handler name of a job. */
  workflowId?: string | undefined;
  /** Inline workflow definition. Undefined for registered workflows and jobs. */
  definition?: unknown;
  input: JsonValue;
  labels?: Record<string, string> | undefined;
  runAt: number | null;
  priority: number;
}

export interface Idempotency {
  key: string;
  /**
   * Request for comparison with a repeat. Null if the key alone identifies the start, as for schedules and webhook
   * deliveries.
   */
  request: KeyedRequest | null;
}

/**
 * Prefix of current digests. Digests without this prefix come from older versions, which included the hash of the
 * definition.
 */
const FORM = '2:';
const OF_KEY_ALONE = `${FORM}key`;

/**
 * Returns whether the key was used for the same request. Returns undefined if the digest has an older format that
 * cannot be compared.
 */
export function isRepeat(known: KeyedRun, idempotency: Idempotency): boolean | undefined {
  if (known.digest.startsWith(FORM)) return known.digest === digestOf(idempotency);
  const asSent = { hash: '', checked: idempotency.request?.input ?? null };
  return isEarlierForm(known, idempotency, asSent) || undefined;
}

export function digestOf({ request }: Idempotency): string {
  return request === null ? OF_KEY_ALONE : FORM + hashOf(request);
}

/**
 * Returns whether a digest from an older version belongs to the same request. Older digests cover `hash` (of the
 * definition) and `checked` (the input with defaults).
 */
export function isEarlierForm(
  { digest, run }: KeyedRun,
  { request }: Idempotency,
  { hash, checked }: { hash: string; checked: JsonValue },
): boolean {
  if (digest.startsWith(FORM) || !run) return false;
  if (request === null) return true;
  const { kind, runAt, priority } = request;
  const isNamed =
    request.definition === undefined ? run.workflowId === request.workflowId : run.definitionHash === hash;
  return isNamed && digest === hashOf({ hash: run.definitionHash, input: checked, runAt, priority, kind });
}

/** Returns a hash of an object that does not depend on the order of the object's keys. */
export function hashOf(request: object): string {
  return createHash('sha256').update(canonicalJson(request)).digest('base64url');
}

/** Throws VALIDATION_ERROR for the idempotency key of a caller that could take the place of a key of the service. */
export function requireCallerKey({ key }: Idempotency): void {
  if (!key.startsWith(END_KEY_PREFIX)) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The idempotency key "${key}" starts with "${END_KEY_PREFIX}", which is reserved for handlers of ended runs; take another key.`,
    { details: { idempotencyKey: key } },
  );
}

/** Returns the CONFLICT error for an idempotency key that was used for another request. */
export function keyTaken({ key }: Idempotency): PlatformError {
  return new PlatformError('CONFLICT', 'This idempotency key was used for another request; take a new key.', {
    details: { idempotencyKey: key },
  });
}
