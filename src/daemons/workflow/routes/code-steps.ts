import type { FastifyRequest } from 'fastify';
import {
  beginCodeReplay,
  type Caller,
  enterCodeStep,
  HEADERS,
  recallCodeSteps,
  settleCodeStep,
  watchCodeSteps,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { ReplayCalls } from '../domain/code/replays.ts';
import type { WorkflowServices } from '../services.ts';

const auth = 'caller';

interface StepCall {
  body: { runId: string; token: string };
  caller: Caller;
  request: FastifyRequest;
}

/**
 * Routes through which workflow functions on remote backends (containers, hosts) request steps. The token of the replay
 * authorizes each call.
 */
export function codeStepRoutes(http: Http, { replays, remoteReplays }: WorkflowServices): void {
  async function callsOf({ body, caller, request }: StepCall): Promise<ReplayCalls> {
    const { runId, token } = body;
    const isForwarded = request.headers[HEADERS.forwardedStep] !== undefined;
    const isElsewhere = !replays.has(runId) && !isForwarded;
    return (isElsewhere && (await remoteReplays.find(body, caller))) || replays.require(runId, token);
  }

  mount(http, beginCodeReplay, { auth }, async (call) => {
    await (await callsOf(call)).begin();
    return { begun: true as const };
  });
  mount(http, recallCodeSteps, { auth }, async (call) => (await callsOf(call)).recall(call.body.after));
  mount(http, enterCodeStep, { auth }, async (call) => (await callsOf(call)).enter(call.body.step));
  mount(http, settleCodeStep, { auth }, async (call) => (await callsOf(call)).settle(call.body.step));
  mount(http, watchCodeSteps, { auth }, async (call) => (await callsOf(call)).watch());
}
