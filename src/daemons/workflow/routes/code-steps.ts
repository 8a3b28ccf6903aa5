import {
  beginCodeReplay,
  enterCodeStep,
  recallCodeSteps,
  settleCodeStep,
  watchCodeSteps,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { WorkflowServices } from '../services.ts';

const auth = 'caller';

/**
 * Routes through which workflow functions on remote backends (containers, hosts) request steps. The token of the replay
 * authorizes each call.
 */
export function codeStepRoutes(http: Http, { replays }: WorkflowServices): void {
  mount(http, beginCodeReplay, { auth }, async ({ body: { runId, token } }) => {
    await replays.require(runId, token).begin();
    return { begun: true as const };
  });
  mount(http, recallCodeSteps, { auth }, ({ body: { runId, token, after } }) =>
    replays.require(runId, token).recall(after),
  );
  mount(http, enterCodeStep, { auth }, ({ body: { runId, token, step } }) =>
    replays.require(runId, token).enter(step),
  );
  mount(http, settleCodeStep, { auth }, ({ body: { runId, token, step } }) =>
    replays.require(runId, token).settle(step),
  );
  mount(http, watchCodeSteps, { auth }, ({ body: { runId, token } }) =>
    replays.require(runId, token).watch(),
  );
}
