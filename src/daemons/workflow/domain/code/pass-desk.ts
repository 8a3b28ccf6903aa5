import type { ReplayContext, ReplayEnd } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import { safeEqual } from '../../../../kit/keys.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { CompiledCode } from '../definition/compiled-workflow.ts';
import type { PassCalls } from './code-pass.ts';

/** One pass to be made through a workflow's function, wherever its plugin runs. */
export interface PassCall {
  code: CompiledCode;
  run: RunRecord;
  /** Tells its log lines from those of other passes. */
  requestId: string;
  /** The span that the pass is made from. */
  spanId: string;
  input: JsonValue;
  pass: ReplayContext;
  timeoutMs: number;
  signal: AbortSignal;
  /** No other call shares its process. */
  alone: boolean;
  log(level: string, message: string): void;
}

/** Runs the function; throws what kept it from running to an end. */
export type RunPass = (call: PassCall) => Promise<ReplayEnd>;

/** The passes under way: what a function asks finds its run by the token that only its pass was told. */
export interface PassDesk {
  readonly run: RunPass;
  /** Takes calls of a pass until the returned function is called. */
  open(runId: string, token: string, calls: PassCalls): () => void;
  /** Throws CONFLICT for a pass that is over, or never was. */
  require(runId: string, token: string): PassCalls;
}

export function createPassDesk(run: RunPass): PassDesk {
  const open = new Map<string, { token: string; calls: PassCalls }>();
  return {
    run,
    open(runId, token, calls) {
      const entry = { token, calls };
      open.set(runId, entry);
      return () => {
        if (open.get(runId) === entry) open.delete(runId);
      };
    },
    require(runId, token) {
      const entry = open.get(runId);
      if (entry && safeEqual(entry.token, token)) return entry.calls;
      throw new PlatformError(
        'CONFLICT',
        `This pass through run ${runId} is over: nothing that it says counts any more.`,
        { details: { runId } },
      );
    },
  };
}
