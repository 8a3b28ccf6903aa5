import { ERROR_CLASSES } from '../../../contracts/error-classes.ts';
import type { RunError, StepAnswer } from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/is-record.ts';
import { messageOf, PlatformCallError, RunnerFailure } from '../failure.ts';

/** A step has failed for good; functions may catch it and go on. */
export class WorkflowStepError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly step: string;
  readonly status: string;

  constructor(step: string, { status, error }: Extract<StepAnswer, { state: 'failed' }>) {
    super(error.message);
    this.name = 'WorkflowStepError';
    this.code = error.code;
    this.details = error.details;
    this.step = step;
    this.status = status;
  }
}

/** How a step's function failed, for the run to judge. */
export interface StepFault {
  error: RunError;
  errorClass?: string;
  retryAfterMs?: number;
}

const CLASSES: ReadonlySet<string> = new Set(ERROR_CLASSES);
/** What Node and undici call a connection that could not be had, or broke. */
const NETWORK = /^(?:ECONN|ENOTFOUND|EAI_|EPIPE|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_)/;

/** Whatever a step's function threw. An error may class itself: `errorClass` and `retryAfterMs`, on it or in its details. */
export function faultOf(thrown: unknown): StepFault {
  const own = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Record<string, unknown>;
  const details = isRecord(own.details) ? own.details : {};
  const code = typeof own.code === 'string' ? own.code : undefined;
  const isOurs = thrown instanceof PlatformCallError || thrown instanceof RunnerFailure;
  return {
    error: { code: code ?? 'STEP_FAILED', message: messageOf(thrown), details: jsonOf(details) },
    ...classOf(thrown, own.errorClass ?? details.errorClass, isOurs ? undefined : code),
    ...pauseOf(own.retryAfterMs ?? details.retryAfterMs),
  };
}

function classOf(thrown: unknown, said: unknown, code: string | undefined): { errorClass?: string } {
  if (typeof said === 'string' && CLASSES.has(said)) return { errorClass: said };
  const name = thrown instanceof Error || thrown instanceof DOMException ? thrown.name : '';
  if (name === 'TimeoutError') return { errorClass: 'timeout' };
  if (code !== undefined && NETWORK.test(code)) return { errorClass: 'network' };
  return {};
}

function pauseOf(pause: unknown): { retryAfterMs?: number } {
  return typeof pause === 'number' && Number.isFinite(pause) && pause > 0 ? { retryAfterMs: pause } : {};
}

/** Details that JSON cannot carry must not lose the failure itself. */
function jsonOf(details: Record<string, unknown>): Record<string, unknown> {
  try {
    return JSON.parse(JSON.stringify(details)) as Record<string, unknown>;
  } catch {
    return {};
  }
}
