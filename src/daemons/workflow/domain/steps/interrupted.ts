import { PlatformError } from '../../../../kit/errors/errors.ts';
import { StepFailure } from './retry-policy.ts';

/**
 * Thrown when the process that performs the work was lost, perhaps because of another call in that process. As after a
 * crash of the service, the progress of the work is unknown.
 * @spec docs/decisions/0101
 */
export class Interrupted extends StepFailure {
  constructor(message: string, details: Record<string, unknown> = {}) {
    super('code', { code: 'STEP_FAILED', message, details });
  }
}

/** Converts a thrown value to Interrupted. Returns undefined if the value does not mean an interruption. */
export function interruptedOf(thrown: unknown): Interrupted | undefined {
  if (!(thrown instanceof PlatformError) || thrown.details.interrupted !== true) return undefined;
  return new Interrupted(thrown.message, thrown.details);
}

/** Signals that an operator sends, or that the kernel sends when memory runs out. */
const SENT: ReadonlySet<unknown> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']);

/** Returns whether the process was killed from outside, so that the work is probably not the cause. */
export function wasKilled({ error: { details } }: Pick<StepFailure, 'error'>): boolean {
  return details.reason === 'signal' && SENT.has(details.signal);
}
