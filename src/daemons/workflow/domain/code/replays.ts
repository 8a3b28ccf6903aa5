import type {
  EnterStep,
  ReadySteps,
  RecalledSteps,
  ReplayContext,
  ReplayEnd,
  SettleStep,
  StepAnswer,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { safeEqual } from '../../../../kit/security/keys.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { CompiledCode } from '../definition/compiled-workflow.ts';

/** Calls that the function of a replay makes to its run. Each rejects with CONFLICT once the replay is over. */
export interface ReplayCalls {
  /** Reports that the function starts; before, it waited for a process and loaded. */
  begin(): Promise<void>;
  /** Returns recorded results of earlier replays, from position `after` on. */
  recall(after: number): Promise<RecalledSteps>;
  enter(step: EnterStep): Promise<StepAnswer>;
  settle(step: SettleStep): Promise<StepAnswer>;
  watch(): Promise<ReadySteps>;
}

/** Request for one replay of a workflow's function, on the local or a remote host. */
export interface ReplayCall {
  code: CompiledCode;
  run: RunRecord;
  /** Correlates the log lines of the replay. */
  requestId: string;
  /** Parent span of the replay. */
  spanId: string;
  input: JsonValue;
  context: ReplayContext;
  timeoutMs: number;
  signal: AbortSignal;
  /** Reserves the process for this call. */
  alone: boolean;
  log(level: string, message: string): void;
}

/** Runs the function. Throws if it cannot run to an end. */
export type RunReplay = (call: ReplayCall) => Promise<ReplayEnd>;

/** Routes the calls of functions by the run id and the secret token of their replay. */
export class ReplayRoutes {
  readonly #open = new Map<string, { token: string; calls: ReplayCalls }>();

  /** Routes calls of a replay until the returned function is called. */
  open(runId: string, token: string, calls: ReplayCalls): () => void {
    const entry = { token, calls };
    this.#open.set(runId, entry);
    return () => {
      if (this.#open.get(runId) === entry) this.#open.delete(runId);
    };
  }

  /** Throws CONFLICT for an unknown or finished replay. */
  require(runId: string, token: string): ReplayCalls {
    const entry = this.#open.get(runId);
    if (entry && safeEqual(entry.token, token)) return entry.calls;
    throw new PlatformError('CONFLICT', `This replay of run ${runId} is over: its calls are ignored.`, {
      details: { runId },
    });
  }
}

/** Runs replays, and routes the calls of those in flight. */
export class Replays {
  readonly run: RunReplay;
  readonly #routes: ReplayRoutes;

  constructor(run: RunReplay, routes = new ReplayRoutes()) {
    this.run = run;
    this.#routes = routes;
  }

  /** Routes calls of a replay until the returned function is called. */
  open(runId: string, token: string, calls: ReplayCalls): () => void {
    return this.#routes.open(runId, token, calls);
  }

  /** Throws CONFLICT for an unknown or finished replay. */
  require(runId: string, token: string): ReplayCalls {
    return this.#routes.require(runId, token);
  }
}
