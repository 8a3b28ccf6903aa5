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

/**
 * Calls that a workflow's function makes to its run during a replay. Each call rejects with CONFLICT once the replay is
 * over.
 */
export interface ReplayCalls {
  /** Reports that the function starts. Until this call, the replay is queued for a process or is loading code. */
  begin(): Promise<void>;
  /** Returns recorded results of earlier replays, starting at position `after`. */
  recall(after: number): Promise<RecalledSteps>;
  enter(step: EnterStep): Promise<StepAnswer>;
  settle(step: SettleStep): Promise<StepAnswer>;
  watch(): Promise<ReadySteps>;
}

/** Request for one replay of a workflow function. */
export interface ReplayCall {
  code: CompiledCode;
  run: RunRecord;
  requestId: string;
  /** Parent span id for the spans of the replay. */
  spanId: string;
  input: JsonValue;
  context: ReplayContext;
  timeoutMs: number;
  signal: AbortSignal;
  /** Whether the process is reserved for this call. */
  alone: boolean;
  log(level: string, message: string): void;
}

/** Runs one replay of the function. Throws if the replay cannot be completed. */
export type RunReplay = (call: ReplayCall) => Promise<ReplayEnd>;

/** Routes calls of workflow functions to their runs by run id. Each replay has its own secret token. */
export class ReplayRoutes {
  readonly #open = new Map<string, { token: string; calls: ReplayCalls }>();

  open(runId: string, token: string, calls: ReplayCalls): () => void {
    const entry = { token, calls };
    this.#open.set(runId, entry);
    return () => {
      if (this.#open.get(runId) === entry) this.#open.delete(runId);
    };
  }

  has(runId: string): boolean {
    return this.#open.has(runId);
  }

  require(runId: string, token: string): ReplayCalls {
    const entry = this.#open.get(runId);
    if (entry && safeEqual(entry.token, token)) return entry.calls;
    throw new PlatformError('CONFLICT', `This replay of run ${runId} is over: its calls are ignored.`, {
      details: { runId },
    });
  }
}

export class Replays {
  readonly run: RunReplay;
  readonly #routes: ReplayRoutes;

  constructor(run: RunReplay, routes = new ReplayRoutes()) {
    this.run = run;
    this.#routes = routes;
  }

  /** Accepts calls of a replay until the returned function is called. */
  open(runId: string, token: string, calls: ReplayCalls): () => void {
    return this.#routes.open(runId, token, calls);
  }

  /** Returns whether a replay of the run is in progress in this process. */
  has(runId: string): boolean {
    return this.#routes.has(runId);
  }

  /** Returns the calls of a replay. Throws CONFLICT if the replay is unknown or finished. */
  require(runId: string, token: string): ReplayCalls {
    return this.#routes.require(runId, token);
  }
}
