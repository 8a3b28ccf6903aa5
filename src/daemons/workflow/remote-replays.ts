import {
  beginCodeReplay,
  type Caller,
  enterCodeStep,
  HEADERS,
  recallCodeSteps,
  settleCodeStep,
  watchCodeSteps,
} from '../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../http/index.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { RunStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ReplayCalls } from './domain/code/replays.ts';
import type { Cluster, Engine } from './domain/engine/ports.ts';

/** Longer than a watch request takes. */
const TIMEOUT_MS = minutes(1);

export interface RemoteReplaysDeps {
  keys: Resources['keys'];
  runs: Pick<RunStore, 'find'>;
  cluster: Cluster | undefined;
  engine: Pick<Engine, 'fence'>;
}

/** Replays of runs that other workflow services execute. A function on a remote host may call any of the services. */
export class RemoteReplays {
  readonly #deps: RemoteReplaysDeps;

  constructor(deps: RemoteReplaysDeps) {
    this.#deps = deps;
  }

  /** Returns the calls of a replay at the service that executes the run. Undefined if no other service executes it. */
  async find(
    { runId, token }: { runId: string; token: string },
    caller: Caller,
  ): Promise<ReplayCalls | undefined> {
    const { runs, cluster, engine, keys } = this.#deps;
    if (!cluster) return undefined;
    const run = await runs.find(caller.namespaceId, runId);
    if (!run || run.fence === null || run.fence === engine.fence) return undefined;
    const url = await cluster.urlOf(run.fence);
    if (url === undefined) return undefined;
    const headers = () => ({
      ...serviceHeaders(keys.internalSecret, caller),
      [HEADERS.forwardedStep]: '1',
    });
    const client = createClient({ url, peer: 'workflow service', headers, timeoutMs: TIMEOUT_MS });
    const replay = { runId, token };
    return {
      begin: async () => void (await client.call(beginCodeReplay, { body: replay })),
      recall: (after) => client.call(recallCodeSteps, { body: { ...replay, after } }),
      enter: (step) => client.call(enterCodeStep, { body: { ...replay, step } }),
      settle: (step) => client.call(settleCodeStep, { body: { ...replay, step } }),
      watch: () => client.call(watchCodeSteps, { body: replay }),
    };
  }
}
