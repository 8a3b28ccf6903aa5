import type { CommandResult, ExecutionRequest, HostPlugin } from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/data/bounded-cache.ts';
import { cancelled, type RunOptions } from '../../../../plugins/index.ts';
import { type ExecutionFrame, HostExecution, type HostExecutionDeps, writeLog } from './execution.ts';
import { alreadySent, lost, tooLarge } from './failures.ts';
import { createLateReports, type ReportLate } from './late-answers.ts';

/**
 * Maximum number of ended executions that are kept. The list distinguishes late results from results with unknown
 * execution ids.
 */
const MAX_ENDED = 1024;

/** Executions of one host session. All in-flight executions fail when the session ends. */
export class HostExecutions {
  readonly #deps: HostExecutionDeps;
  readonly #live = new Map<string, HostExecution>();
  /** Requests of ended executions without their large fields, kept for frames that arrive late. */
  readonly #ended = createBoundedCache<ExecutionRequest>(MAX_ENDED);
  readonly #reportLate: ReportLate;

  constructor(deps: HostExecutionDeps) {
    this.#deps = deps;
    this.#reportLate = createLateReports(deps.link.hostId, deps.clock, deps.logger);
  }

  get size(): number {
    return this.#live.size;
  }

  async run(
    request: ExecutionRequest,
    plugin: HostPlugin,
    { signal, stream, onBegun }: RunOptions,
  ): Promise<CommandResult> {
    const { executionId, plugin: _, ...rest } = request;
    if (this.#live.has(executionId) || this.#ended.get(executionId))
      throw alreadySent(request, this.#deps.link.hostId);
    if (signal?.aborted) throw cancelled(request);
    const execution = new HostExecution(request, { stream, onBegun }, this.#deps, () => this.#end(request));
    this.#live.set(executionId, execution);
    const onAbort = (): void => execution.giveUp(cancelled(request), 'its caller disconnected');
    signal?.addEventListener('abort', onAbort, { once: true });
    const isSent = execution.send({
      type: 'execute',
      executionId,
      request: { ...rest, plugin },
      ...(stream ? { streams: true } : {}),
      ...(onBegun ? { tellsBegun: true } : {}),
    });
    if (!isSent) execution.reject(tooLarge(request));
    try {
      return await execution.result;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  take(frame: ExecutionFrame): void {
    const execution = this.#live.get(frame.executionId);
    if (execution) execution.take(frame);
    else this.#takeLate(frame);
  }

  /**
   * Extends the timeout of the execution. Must be called when a large frame, which might contain the result, starts to
   * arrive.
   */
  expectLong(executionId: string): void {
    this.#live.get(executionId)?.expectLong();
  }

  /**
   * Rejects in-flight executions with HOST_UNAVAILABLE. The executions are not retried on another host, because their
   * handlers might already have caused side effects.
   */
  failAll(why: string): void {
    for (const execution of [...this.#live.values()])
      execution.reject(lost(execution.request, this.#deps.link.hostId, why));
  }

  #end(request: ExecutionRequest): void {
    const { executionId } = request;
    this.#live.delete(executionId);
    this.#ended.set(executionId, { ...request, input: undefined, hostContext: {}, params: {} });
  }

  /** Handles a frame for an ended or unknown execution. Results are dropped and reported as diagnostics. */
  #takeLate(frame: ExecutionFrame): void {
    const { services, link } = this.#deps;
    const request = this.#ended.get(frame.executionId);
    // Log messages of a cancelled handler are also written, because these messages can explain why the handler stopped.
    if (frame.type === 'log' && request) writeLog(services, frame, request, AbortSignal.abort());
    if (frame.type === 'result' || frame.type === 'error')
      this.#reportLate(frame.type, frame.executionId, request !== undefined);
    if (frame.type !== 'call') return;
    const error = { code: 'EXECUTION_ERROR', message: 'The execution has ended.' };
    link.send({ type: 'reply', callId: frame.callId, outcome: { ok: false, error } });
  }
}
