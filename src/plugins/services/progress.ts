import type { ExecutionRequest } from '../../contracts/index.ts';
import { redactText } from '../../kit/telemetry/redact.ts';
import type { PlatformService } from '../execution.ts';

const MAX_MESSAGE_CHARS = 1000;
const MAX_REPORTS = 1000;
const MAX_LOG_LINES = 1000;

/** Receives what a handler reports while it runs. Texts are untrusted; secrets in them are masked. */
export interface ExecutionListener {
  /** `total` is undefined if the handler does not know it. Both have the same unit. */
  progress(done: number, total: number | undefined, message: string | undefined): void;
  log(level: string, message: string): void;
}

interface Entry {
  listener: ExecutionListener;
  done: number;
  reports: number;
  lines: number;
}

/** The listeners of executions in flight, by execution. Listeners are in the process whose services the handler calls. */
export class ExecutionListeners {
  readonly #entries = new Map<string, Entry>();

  /** Runs an execution, whose reports go to the listener. */
  async during<Result>(
    { executionId }: Pick<ExecutionRequest, 'executionId'>,
    listener: ExecutionListener | undefined,
    run: () => Promise<Result>,
  ): Promise<Result> {
    if (!listener) return run();
    this.#entries.set(executionId, { listener, done: Number.NEGATIVE_INFINITY, reports: 0, lines: 0 });
    try {
      return await run();
    } finally {
      this.#entries.delete(executionId);
    }
  }

  /** Passes a report on. Reports that do not increase, and those above the limit, are dropped. */
  progress(
    executionId: string,
    tenantId: string,
    { done, total, message }: { done: number; total: number | undefined; message: string | undefined },
  ): void {
    const entry = this.#entries.get(executionId);
    if (!entry || done <= entry.done || entry.reports >= MAX_REPORTS) return;
    entry.done = done;
    entry.reports++;
    const text = message === undefined ? undefined : shownText(message, tenantId);
    entry.listener.progress(done, total, text);
  }

  /** Passes a log line on. Lines above the limit are only in the log. */
  log(executionId: string, tenantId: string, level: unknown, message: unknown): void {
    const entry = this.#entries.get(executionId);
    if (!entry || entry.lines >= MAX_LOG_LINES) return;
    entry.lines++;
    const text = typeof message === 'string' ? message : String(JSON.stringify(message));
    entry.listener.log(String(level), shownText(text, tenantId));
  }
}

/** Masks secrets before it cuts the text, because a part of a secret would not be recognised. */
function shownText(text: string, tenantId: string): string {
  return redactText(text, tenantId).slice(0, MAX_MESSAGE_CHARS);
}

/**
 * Creates `ctx.progress`. Reports that are not numbers are ignored, because the handler does not wait for the reply.
 * @spec docs/plugins.md "Commands"
 */
export function createProgressService(listeners: ExecutionListeners): PlatformService {
  return {
    async report({ request }, [done, total, message]) {
      if (typeof done !== 'number' || !Number.isFinite(done)) return;
      listeners.progress(request.executionId, request.tenantId, {
        done,
        total: typeof total === 'number' && Number.isFinite(total) ? total : undefined,
        message: typeof message === 'string' ? message : undefined,
      });
    },
  };
}

/** Returns the log service, which also passes lines on to listeners. */
export function listenedLog(log: PlatformService, listeners: ExecutionListeners): PlatformService {
  return {
    ...log,
    async write(context, args) {
      const { executionId, tenantId } = context.request;
      listeners.log(executionId, tenantId, args[0], args[1]);
      return log.write!(context, args);
    },
  };
}
