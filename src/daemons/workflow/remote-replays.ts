import {
  beginCodeReplay,
  type Caller,
  enterCodeStep,
  recallCodeSteps,
  settleCodeStep,
  watchCodeSteps,
} from '../../contracts/index.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { RunStore } from '../../store/ports/index.ts';
import type { ReplayCalls } from './domain/code/replays.ts';
import type { Engine } from './domain/engine/ports.ts';
import type { RunOwners } from './run-owners.ts';

/** Longer than a watch request takes. */
const TIMEOUT_MS = minutes(1);

export interface RemoteReplaysDeps {
  runs: Pick<RunStore, 'find'>;
  /** Undefined if no other process executes runs of the store. */
  owners: RunOwners | undefined;
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
    const { runs, owners, engine } = this.#deps;
    if (!owners) return undefined;
    const run = await runs.find(caller.namespaceId, runId);
    if (!run || run.fence === null || run.fence === engine.fence) return undefined;
    const client = await owners.clientOf(run.fence, { timeoutMs: TIMEOUT_MS, caller });
    if (!client) return undefined;
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
