import { PlatformError } from '../../../../kit/errors.ts';
import { StepFailure } from './retry-policy.ts';

/**
 * The process that the work ran in was lost, and another call of it may be at fault: as after a crash of the service, nobody
 * knows how far the work came. @spec docs/decisions/0101
 */
export class Interrupted extends StepFailure {
  constructor(message: string, details: Record<string, unknown> = {}) {
    super('code', { code: 'STEP_FAILED', message, details });
  }
}

/** The thrown value as an interruption; undefined when it says something else. */
export function interruptedOf(thrown: unknown): Interrupted | undefined {
  if (!(thrown instanceof PlatformError) || thrown.details.interrupted !== true) return undefined;
  return new Interrupted(thrown.message, thrown.details);
}

/** What ends a process from outside: an operator, or the kernel for want of memory. */
const SENT: ReadonlySet<unknown> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']);

/** Whether the work is hardly at fault for the end of its process. */
export function wasKilled({ error: { details } }: StepFailure): boolean {
  return details.reason === 'signal' && SENT.has(details.signal);
}
