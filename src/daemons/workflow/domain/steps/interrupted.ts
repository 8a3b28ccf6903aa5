import { PlatformError } from '../../../../kit/errors/errors.ts';
import { StepFailure } from './retry-policy.ts';

/**
 * Error for a step whose process ended unexpectedly, possibly because of another call. The progress of the step is then
 * unknown. @spec docs/decisions/0101
 */
export class Interrupted extends StepFailure {
  constructor(message: string, details: Record<string, unknown> = {}) {
    super('code', { code: 'STEP_FAILED', message, details });
  }
}

/** Converts an error about an interrupted call to `Interrupted`. Returns undefined for other values. */
export function interruptedOf(thrown: unknown): Interrupted | undefined {
  if (!(thrown instanceof PlatformError) || thrown.details.interrupted !== true) return undefined;
  return new Interrupted(thrown.message, thrown.details);
}

/** Process signals that come from an operator, or from the kernel when memory runs out. */
const SENT: ReadonlySet<unknown> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']);

/** Returns whether a signal from outside killed the process. The work of the step is then probably not the cause. */
export function wasKilled({ error: { details } }: Pick<StepFailure, 'error'>): boolean {
  return details.reason === 'signal' && SENT.has(details.signal);
}
