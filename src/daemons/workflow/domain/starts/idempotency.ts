import { createHash } from 'node:crypto';
import type { JsonValue, KeyedRun, RunRecord } from '../../../../store/ports/index.ts';
import { canonicalJson } from '../definition/compile-common.ts';

/**
 * What a caller asked for, as it was sent: a repeat asks for the same whatever was deployed meanwhile. `retry` and
 * `timeoutMs` of a job say how it is run, not what, and do not count.
 */
export interface AskedStart {
  kind: RunRecord['kind'];
  /** A registered workflow, or the handler of a job. */
  workflowId?: string | undefined;
  /** A definition sent along. */
  definition?: unknown;
  input: JsonValue;
  runAt: number | null;
  priority: number;
}

export interface Idempotency {
  key: string;
  /** Null where the key itself names what is started: a planned time, a delivery. */
  asked: AskedStart | null;
}

/** Begins every digest of this form. Those without it are of versions that hashed the definition. */
const FORM = '2:';
const OF_KEY_ALONE = `${FORM}key`;

/** Whether the key was used for the same request; undefined where a version before stored it in a form that cannot tell. */
export function isRepeat(known: KeyedRun, idempotency: Idempotency): boolean | undefined {
  if (known.digest.startsWith(FORM)) return known.digest === digestOf(idempotency);
  const asSent = { hash: '', checked: idempotency.asked?.input ?? null };
  return isEarlierForm(known, idempotency, asSent) || undefined;
}

export function digestOf({ asked }: Idempotency): string {
  return asked === null ? OF_KEY_ALONE : FORM + hashOf(asked);
}

/**
 * Whether the key was stored by an earlier version for the same request. Its digest held the hash of the definition, which
 * the run still names, and the input with its defaults. `checked` and `hash` are those of the request as it is read now.
 */
export function isEarlierForm(
  { digest, run }: KeyedRun,
  { asked }: Idempotency,
  { hash, checked }: { hash: string; checked: JsonValue },
): boolean {
  if (digest.startsWith(FORM) || !run) return false;
  if (asked === null) return true;
  const { kind, runAt, priority } = asked;
  const isNamed =
    asked.definition === undefined ? run.workflowId === asked.workflowId : run.definitionHash === hash;
  return isNamed && digest === hashOf({ hash: run.definitionHash, input: checked, runAt, priority, kind });
}

/** Equal for equal values, whatever the order of their keys. */
export function hashOf(asked: object): string {
  return createHash('sha256').update(canonicalJson(asked)).digest('base64url');
}
