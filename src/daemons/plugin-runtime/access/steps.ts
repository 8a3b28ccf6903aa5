import {
  beginCodeReplay,
  enterCodeStep,
  recallCodeSteps,
  settleCodeStep,
  watchCodeSteps,
} from '../../../contracts/index.ts';
import { createClient } from '../../../http/index.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { StepAccess } from '../../../plugins/index.ts';
import type { Resources } from '../../define-daemon.ts';
import { callOptions } from './call-options.ts';

/**
 * Timeout of a call, long enough for replies that wait for the disk. A `watch` call, which waits for changed steps, is
 * answered within a third of this time.
 */
const TIMEOUT_MS = minutes(1);

/** Access to runs of code workflows, for services other than the workflow service. */
export function createStepAccess({ peers, keys }: Pick<Resources, 'peers' | 'keys'>): StepAccess {
  const client = createClient({
    url: () => peers.urlOf('workflow'),
    peer: 'workflow service',
    timeoutMs: TIMEOUT_MS,
  });
  const options = callOptions(keys);
  return {
    begin: (scope, pass) => client.call(beginCodeReplay, { body: pass }, options(scope)),
    recall: (scope, pass, after) =>
      client.call(recallCodeSteps, { body: { ...pass, after } }, options(scope)),
    enter: (scope, pass, step) => client.call(enterCodeStep, { body: { ...pass, step } }, options(scope)),
    settle: (scope, pass, step) => client.call(settleCodeStep, { body: { ...pass, step } }, options(scope)),
    watch: (scope, pass) => client.call(watchCodeSteps, { body: pass }, options(scope)),
  };
}
