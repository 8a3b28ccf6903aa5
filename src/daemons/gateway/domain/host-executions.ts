import {
  type CommandResult,
  type ExecutionRequest,
  type GatewayFrame,
  HOST_SOCKET,
  type HostPlugin,
  isPlatformCode,
  type PlatformCode,
} from '../../../contracts/index.ts';
import { createBoundedCache } from '../../../kit/bounded-cache.ts';
import type { Clock } from '../../../kit/clock.ts';
import { seconds } from '../../../kit/duration.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import {
  type CallRouter,
  createCallRouter,
  type PlatformServices,
  readResult,
} from '../../../plugins/index.ts';
import type { AgentFrameOf } from './host-frames.ts';

/** The agent keeps the handler's time itself; this much later we stop waiting for its word. */
const GRACE_MS = seconds(2);
/** To fetch a plugin that the host lacks, and to start a process. */
const PREPARE_MS = seconds(60);
/** Ids of the executions that ended lately: a result for one of them comes too late, one for another is made up. */
const REMEMBERED = 1024;

/** What an agent may report; any other code is EXECUTION_ERROR. */
const REPORTABLE = new Set<PlatformCode>([
  'EXECUTION_ERROR',
  'EXECUTION_TIMEOUT',
  'HOST_MISMATCH',
  'HOST_UNAVAILABLE',
  'INTEGRITY_MISMATCH',
  'INVALID_HANDLER',
  'NOT_IMPLEMENTED',
  'PAYLOAD_TOO_LARGE',
  'PERMISSION_DENIED',
  'SANDBOX_ERROR',
  'SERVICE_UNAVAILABLE',
  'VALIDATION_ERROR',
]);

interface Pending {
  request: ExecutionRequest;
  abort: AbortController;
  calls: CallRouter;
  /** Our number of a call by the agent's is the same: each session counts for itself. */
  settle(run: () => void): void;
  reject(error: PlatformError): void;
  resolve(result: CommandResult): void;
  armTimer(ms: number): void;
}

export interface HostExecutionsDeps {
  hostId: string;
  services: PlatformServices;
  clock: Clock;
  logger: Logger;
  /** False when the frame could not be sent because it is too large. */
  send(frame: GatewayFrame): boolean;
}

/** The executions of one session. Each settles once: by result, error, timeout, cancel, or the end of the session. */
export interface HostExecutions {
  readonly size: number;
  run(request: ExecutionRequest, plugin: HostPlugin, signal: AbortSignal | undefined): Promise<CommandResult>;
  progress(frame: AgentFrameOf<'progress'>): void;
  log(frame: AgentFrameOf<'log'>): void;
  call(frame: AgentFrameOf<'call'>): void;
  result(frame: AgentFrameOf<'result'>): void;
  error(frame: AgentFrameOf<'error'>): void;
  /** Fails whatever is under way with HOST_UNAVAILABLE: nobody knows how far it went, so it is not run elsewhere. */
  failAll(why: string): void;
}

export function createHostExecutions(deps: HostExecutionsDeps): HostExecutions {
  const { hostId, services, clock, logger, send } = deps;
  const live = new Map<string, Pending>();
  const ended = createBoundedCache<true>(REMEMBERED);

  /** The execution a frame speaks of; one that ended is worth a line, as its work was in vain. */
  function find({ type, executionId }: { type: string; executionId: string }): Pending | undefined {
    const pending = live.get(executionId);
    if (!pending && (type === 'result' || type === 'error')) reportLate(type, executionId);
    return pending;
  }

  function reportLate(type: string, executionId: string): void {
    const late = ended.get(executionId) === true;
    logger.diagnostic({
      domain: 'hosts',
      event: late ? 'host.late_result' : 'host.unknown_execution',
      level: 'warn',
      reasonCode: late ? 'LATE_RESULT' : 'UNKNOWN_EXECUTION',
      message: late
        ? `Host ${hostId} answered an execution that had ended already; the answer is dropped`
        : `Host ${hostId} answered an execution it was not given; the answer is dropped`,
      outcome: 'refused',
      evidence: { hostId, executionId, type },
    });
  }

  function open(request: ExecutionRequest, deferred: PromiseWithResolvers<CommandResult>): Pending {
    const { executionId, timeoutMs } = request;
    let stopTimer = () => {};
    const abort = new AbortController();
    const pending: Pending = {
      request,
      abort,
      calls: createCallRouter({
        services,
        logger,
        reply: ({ callId, type: _, ...outcome }) => reply(callId, outcome),
      }),
      settle(run) {
        if (!live.delete(executionId)) return;
        ended.set(executionId, true);
        stopTimer();
        run();
        abort.abort();
      },
      resolve: (result) => pending.settle(() => deferred.resolve(result)),
      reject: (error) => pending.settle(() => deferred.reject(error)),
      armTimer(ms) {
        stopTimer();
        stopTimer = clock.after(ms, () => {
          send({ type: 'cancel', executionId, reason: `not finished within ${timeoutMs} ms` });
          pending.reject(timedOut(request));
        });
      },
    };
    live.set(executionId, pending);
    return pending;
  }

  function reply(callId: number, outcome: ReplyOutcome): void {
    const sent = send({ type: 'reply', callId, outcome });
    if (sent) return;
    const message = `The answer is larger than the ${HOST_SOCKET.frameBytes} bytes that a host's socket carries.`;
    send({ type: 'reply', callId, outcome: { ok: false, error: { code: 'PAYLOAD_TOO_LARGE', message } } });
  }

  return {
    get size() {
      return live.size;
    },
    async run(request, plugin, signal) {
      const { executionId, plugin: _, ...rest } = request;
      if (live.has(executionId) || ended.get(executionId)) {
        throw new PlatformError(
          'CONFLICT',
          `The execution ${executionId} was given to host ${hostId} already.`,
        );
      }
      if (signal?.aborted) throw cancelled(request);
      const deferred = Promise.withResolvers<CommandResult>();
      const pending = open(request, deferred);
      const onAbort = (): void => {
        send({ type: 'cancel', executionId, reason: 'its caller left' });
        pending.reject(cancelled(request));
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      const frame = { type: 'execute', executionId, request: { ...rest, plugin } } as const;
      if (send(frame)) pending.armTimer(request.timeoutMs + GRACE_MS);
      else pending.reject(tooLarge(request));
      try {
        return await deferred.promise;
      } finally {
        signal?.removeEventListener('abort', onAbort);
      }
    },
    progress(frame) {
      const pending = find(frame);
      if (!pending) return;
      const extraMs = frame.state === 'preparing' ? PREPARE_MS : GRACE_MS;
      pending.armTimer(pending.request.timeoutMs + extraMs);
    },
    log(frame) {
      const pending = find(frame);
      const write = services.log?.write;
      if (!pending || !write) return;
      const { request, abort } = pending;
      write({ request, signal: abort.signal }, [frame.level, frame.message, frame.meta]).catch(() => {});
    },
    call(frame) {
      const pending = find(frame);
      if (pending) pending.calls.handle(frame, { request: pending.request, signal: pending.abort.signal });
      else {
        const error = { code: 'EXECUTION_ERROR', message: 'The execution has ended.' };
        send({ type: 'reply', callId: frame.callId, outcome: { ok: false, error } });
      }
    },
    result(frame) {
      const pending = find(frame);
      if (!pending) return;
      try {
        pending.resolve(readResult({ result: frame.result }));
      } catch (error) {
        pending.reject(error as PlatformError);
      }
    },
    error(frame) {
      const pending = find(frame);
      if (!pending) return;
      const { code, message, details = {} } = frame.error;
      const known = isPlatformCode(code) && REPORTABLE.has(code) ? code : 'EXECUTION_ERROR';
      pending.reject(new PlatformError(known, message, { details: { ...details, hostId } }));
    },
    failAll(why) {
      for (const { request, reject } of [...live.values()]) reject(lost(request, hostId, why));
    },
  };
}

type ReplyOutcome = Extract<GatewayFrame, { type: 'reply' }>['outcome'];

function lost({ handler, executionId }: ExecutionRequest, hostId: string, why: string): PlatformError {
  return new PlatformError(
    'HOST_UNAVAILABLE',
    `The connection to host ${hostId} ended while "${handler}" was running there (${why}); whether it finished is not known.`,
    { details: { hostId, executionId, reason: why } },
  );
}

function timedOut({ handler, plugin, timeoutMs }: ExecutionRequest): PlatformError {
  return new PlatformError(
    'EXECUTION_TIMEOUT',
    `"${handler}" of plugin ${plugin.id} did not finish within ${timeoutMs} ms.`,
    { details: { timeoutMs } },
  );
}

function cancelled({ handler }: ExecutionRequest): PlatformError {
  return new PlatformError('EXECUTION_ERROR', `The call of "${handler}" was cancelled by its caller.`, {
    details: { reason: 'cancelled' },
  });
}

function tooLarge({ handler }: ExecutionRequest): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The input of "${handler}" does not fit into the ${HOST_SOCKET.frameBytes} bytes that a host's socket carries.`,
    { details: { maxBytes: HOST_SOCKET.frameBytes } },
  );
}
