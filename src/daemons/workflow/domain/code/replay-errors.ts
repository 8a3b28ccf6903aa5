import type { RunEnding, RunError } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';

export function cancelledError(reason: RunEnding): RunError {
  const message = reason === 'cancelled' ? 'The run was cancelled.' : 'The run did not end in time.';
  return { code: 'CANCELLED', message, details: { reason } };
}

export function replayIsOver(): PlatformError {
  return new PlatformError(
    'CONFLICT',
    'This replay of the workflow function is over: its run was claimed by another replay, or has ended.',
  );
}
