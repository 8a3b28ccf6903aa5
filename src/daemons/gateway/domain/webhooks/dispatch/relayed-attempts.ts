import type { MaybePromise } from '../../../../../kit/data/maybe-promise.ts';
import { hours } from '../../../../../kit/time/duration.ts';
import type { PrimaryProcess, SiblingProcess } from '../../../../group/process-group.ts';
import type { AttemptEnd } from './attempts.ts';
import type { AttemptRequest, RequestedAttempts } from './requested-attempts.ts';

const RUN = 'attempts.run';
const FOLLOW = 'attempts.follow';
/** Longer than any handler may run. */
const RUN_TIMEOUT_MS = hours(25);

/** Serves the calls of the gateway that schedules the deliveries. */
export interface AttemptsServer {
  run(request: AttemptRequest): Promise<AttemptEnd | undefined>;
  follow(scheduler: number): MaybePromise<string[]>;
}

/** Passes the calls to the primary process, because a call may reach any process that shares the port. */
export function relayedAttempts({ primary }: Pick<SiblingProcess, 'primary'>): AttemptsServer {
  return {
    async run(request) {
      const end = await primary.call(RUN, request, { timeoutMs: RUN_TIMEOUT_MS });
      return (end as AttemptEnd | null) ?? undefined;
    },
    follow: async (scheduler) => (await primary.call(FOLLOW, scheduler)) as string[],
  };
}

/** Serves the calls that siblings pass to this primary process. */
export function serveRelayedAttempts(
  group: Pick<PrimaryProcess, 'answer'>,
  attempts: Pick<RequestedAttempts, 'run' | 'follow'>,
): void {
  group.answer(RUN, async (request) => (await attempts.run(request as AttemptRequest)) ?? null);
  group.answer(FOLLOW, (scheduler) => attempts.follow(scheduler as number));
}
