import type { RunEnding, RunError } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { StepFailure } from '../steps/retry-policy.ts';

export function cancelledError(reason: RunEnding): RunError {
  const message = reason === 'cancelled' ? 'The run was cancelled.' : 'The run did not end in time.';
  return { code: 'CANCELLED', message, details: { reason } };
}

export function passIsOver(): PlatformError {
  return new PlatformError(
    'CONFLICT',
    'This pass through the workflow is over: its run was taken up by another one, or has ended.',
  );
}

export function toAbandoned(): StepFailure {
  return new StepFailure('code', {
    code: 'STEP_FAILED',
    message: "The workflow's function ended while the step was in the air.",
    details: {},
  });
}
