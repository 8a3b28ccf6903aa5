import type { DueDelivery, EndedAttempt, UnsentEnd } from '../../../../../store/ports/index.ts';
import type { SentAttempt } from '../message-sender.ts';
import { isSuccess, planAfter, type RetryPlan, type RetrySituation } from './retry-plan.ts';

/** An attempt as it is stored, and what it changes at its endpoint. */
export interface AttemptEnd extends Pick<RetryPlan, 'failingSince' | 'disable'> {
  end: EndedAttempt;
}

/** Returns the end of a delivery that must not be sent, because its endpoint was moved to another application. */
export function foreignEnd({ messageId, endpointId }: DueDelivery, now: number): UnsentEnd {
  const error = 'The endpoint was moved to another application';
  return { messageId, endpointId, status: 'cancelled', error, endedAt: now };
}

/** Returns the end of an attempt that was sent. Pure. @spec docs/messages.md "Retries" */
export function endOf(
  delivery: DueDelivery,
  sent: SentAttempt,
  situation: Omit<RetrySituation, 'result' | 'tries'>,
): AttemptEnd {
  const { messageId, endpointId, attempts, isReplay } = delivery;
  const { startedAt, durationMs, responseStatus, excerpt, error } = sent;
  const tries = delivery.tries + 1;
  const { failingSince, disable, ...outcome } = planAfter({ ...situation, result: sent, tries });
  const trigger = tries > 1 ? 'retry' : isReplay ? 'replay' : 'first';
  const succeeded = isSuccess(responseStatus);
  const end: EndedAttempt = {
    ...{ messageId, endpointId, trigger, startedAt, durationMs, succeeded, responseStatus, excerpt, error },
    ...{ number: attempts + 1, tries },
    ...outcome,
  };
  return { end, failingSince, disable };
}
