import {
  beginCodeReplay,
  type Caller,
  enterCodeStep,
  recallCodeSteps,
  settleCodeStep,
  watchCodeSteps,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { ReplayCalls } from '../domain/code/replays.ts';
import type { WorkflowServices } from '../services.ts';

const auth = 'caller';

/**
 * Routes through which workflow functions on remote backends (containers, hosts) request steps. The token of the replay
 * authorizes each call.
 */
export function codeStepRoutes(http: Http, { replays, remoteReplays }: WorkflowServices): void {
  async function callsOf(body: { runId: string; token: string }, caller: Caller): Promise<ReplayCalls> {
    const { runId, token } = body;
    const isElsewhere = !replays.has(runId);
    return (isElsewhere && (await remoteReplays.find(body, caller))) || replays.require(runId, token);
  }

  mount(http, beginCodeReplay, { auth }, async ({ body, caller }) => {
    await (await callsOf(body, caller)).begin();
    return { begun: true as const };
  });
  mount(http, recallCodeSteps, { auth }, async ({ body, caller }) =>
    (await callsOf(body, caller)).recall(body.after),
  );
  mount(http, enterCodeStep, { auth }, async ({ body, caller }) =>
    (await callsOf(body, caller)).enter(body.step),
  );
  mount(http, settleCodeStep, { auth }, async ({ body, caller }) =>
    (await callsOf(body, caller)).settle(body.step),
  );
  mount(http, watchCodeSteps, { auth }, async ({ body, caller }) => (await callsOf(body, caller)).watch());
}
