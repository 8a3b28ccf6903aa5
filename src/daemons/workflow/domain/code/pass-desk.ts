import type { ReplayContext, ReplayEnd } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { safeEqual } from '../../../../kit/security/keys.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { CompiledCode } from '../definition/compiled-workflow.ts';
import type { PassCalls } from './code-pass.ts';

/** Request for one replay of a workflow's function, on the local or a remote host. */
export interface PassCall {
  code: CompiledCode;
  run: RunRecord;
  /** Correlates the log lines of the replay. */
  requestId: string;
  /** Parent span of the replay. */
  spanId: string;
  input: JsonValue;
  pass: ReplayContext;
  timeoutMs: number;
  signal: AbortSignal;
  /** Reserves the process for this call. */
  alone: boolean;
  log(level: string, message: string): void;
}

/** Runs the function. Throws if it cannot run to an end. */
export type RunPass = (call: PassCall) => Promise<ReplayEnd>;

/** Replays in flight. A call of a function is routed by the run id and the secret token of its replay. */
export interface PassRoutes {
  /** Routes calls of a replay until the returned function is called. */
  open(runId: string, token: string, calls: PassCalls): () => void;
  /** Throws CONFLICT for an unknown or finished replay. */
  require(runId: string, token: string): PassCalls;
}

/** Replays in flight, and what runs them. */
export interface PassDesk extends PassRoutes {
  readonly run: RunPass;
}

export function createPassRoutes(): PassRoutes {
  const open = new Map<string, { token: string; calls: PassCalls }>();
  return {
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
