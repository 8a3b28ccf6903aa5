import { createHash } from 'node:crypto';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, KeyedRun, RunRecord } from '../../../../store/ports/index.ts';
import { canonicalJson } from '../definition/compile-common.ts';

/**
 * A start request as sent. A repeated start is compared with this request, so that a deployment between the two does
 * not matter. `retry` and `timeoutMs` of a job are excluded, because they do not change the work.
 */
export interface KeyedRequest {
  kind: RunRecord['kind'];
  /** Id of a registered workflow, or the handler name of a job. */
  workflowId?: string | undefined;
  /** Inline definition, if the request contains one. */
  definition?: unknown;
  input: JsonValue;
  runAt: number | null;
  priority: number;
}

export interface Idempotency {
  key: string;
  /** The request; null if the key alone identifies the start, as for a planned time or a webhook delivery. */
  request: KeyedRequest | null;
}

/** Prefix of current digests. Digests without this prefix come from older versions, which hashed the definition. */
const FORM = '2:';
const OF_KEY_ALONE = `${FORM}key`;

/**
 * Returns whether the key was used for the same request. Returns undefined if an older version wrote the digest, which
 * then cannot be compared.
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
 * Returns whether an older version stored the key for the same request. Older digests cover the hash of the definition
 * and the input with defaults; `hash` and `checked` are these two values of the current request.
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

/** Hashes a value independently of its key order. */
export function hashOf(request: object): string {
  return createHash('sha256').update(canonicalJson(request)).digest('base64url');
}

/** Returns the error for a key that was used for another request. */
export function keyTaken({ key }: Idempotency): PlatformError {
  return new PlatformError('CONFLICT', 'This idempotency key was used for another request; take a new key.', {
    details: { idempotencyKey: key },
  });
}
