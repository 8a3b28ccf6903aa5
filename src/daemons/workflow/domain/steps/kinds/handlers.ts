import {
  type CommandResult,
  ErrorClass,
  type HandlerRef,
  type RunError,
  type SchemaRef,
} from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../../store/ports/index.ts';
import { interruptedOf } from '../interrupted.ts';
import { type PluginAway, pluginAwayOf } from '../plugin-away.ts';
import { classOfCode, StepFailure } from '../retry-policy.ts';
import type { StepCall, StepKind } from '../step-kind.ts';

/** A handler that a plugin's manifest declares. */
export interface DeclaredHandler {
  pluginId: string;
  handler: HandlerRefText;
  input?: SchemaRef | undefined;
  output?: SchemaRef | undefined;
  timeoutMs?: number | undefined;
  idempotent: boolean;
}
type HandlerRefText = ReturnType<typeof HandlerRef.parse>;

export interface HandlerCall {
  declared: DeclaredHandler;
  host: 'workflow' | 'job';
  hostContext: Record<string, unknown>;
  input: JsonValue;
  tenantId: string;
  hostId: string;
  requestId: string;
  traceId: string;
  parentSpanId: string;
  timeoutMs: number;
  signal: AbortSignal;
  /** Whether the call needs a process without other calls. */
  alone: boolean;
  /**
   * Callback that is called when the handler begins. Before the handler begins, the call can be queued for a process of
   * the plugin.
   */
  begun(): void;
  log(level: string, message: string): void;
}

export interface Handlers {
  /** Returns the plugin id from the name of a command or job handler. */
  pluginOf(name: string): string;
  /**
   * Returns the declaration of a command. Throws PLUGIN_NOT_FOUND for an unknown plugin, and INVALID_HANDLER for an
   * unknown command.
   */
  command(uses: string): DeclaredHandler;
  /** Returns the declaration of a job handler. Throws JOB_NOT_FOUND for an unknown job. */
  job(handler: string): DeclaredHandler;
  execute(call: HandlerCall): Promise<CommandResult>;
}

/** Prefix of job handlers in `uses`. A background job is a run with a single step whose `uses` has this prefix. */
export const JOB_PREFIX = 'job:';
const DEFAULT_TIMEOUT_MS = minutes(5);

/** Runs a plugin's command (`<plugin>/<command>`) or job (`job:<plugin>/<job>`) as a step. */
export function handlerStep(handlers: Handlers): StepKind {
  const declared = (uses: string): DeclaredHandler =>
    uses.startsWith(JOB_PREFIX) ? handlers.job(uses.slice(JOB_PREFIX.length)) : handlers.command(uses);

  function away(uses: string): PluginAway | undefined {
    try {
      declared(uses);
      return undefined;
    } catch (error) {
      const name = uses.startsWith(JOB_PREFIX) ? uses.slice(JOB_PREFIX.length) : uses;
      return pluginAwayOf(error, handlers.pluginOf(name));
    }
  }
  return {
    name: 'plugin',
    mode: 'effect',
    takesSlot: true,
    reportsBegin: true,
    takesSecrets: true,
    defaultTimeoutMs: DEFAULT_TIMEOUT_MS,
    check: () => [],
    away,
    isIdempotent(uses) {
      try {
        return declared(uses).idempotent;
      } catch {
        return false;
      }
    },
    async run(step) {
      const isJob = step.uses.startsWith(JOB_PREFIX);
      const missing = away(step.uses);
      if (missing) throw missing;
      const found = declared(step.uses);
      const result = await execute(handlers, found, step, isJob);
      if (result.exitCode === 0) return { output: (result.result ?? null) as JsonValue };
      throw resultFailure(result);
    },
  };
}

async function execute(
  handlers: Handlers,
  declared: DeclaredHandler,
  step: StepCall,
  isJob: boolean,
): Promise<CommandResult> {
  const { run, stepId, attempt, idempotencyKey, input } = step;
  const hostContext = {
    host: isJob ? 'job' : 'workflow',
    runId: run.id,
    attempt,
    ...(isJob ? { jobId: run.id } : { workflowId: run.workflowId, stepId }),
    ...(idempotencyKey === null ? {} : { idempotencyKey }),
  };
  try {
    return await handlers.execute({
      declared,
      host: isJob ? 'job' : 'workflow',
      hostContext,
      input: isJob ? (input.input ?? null) : input,
      tenantId: run.tenantId,
      hostId: run.hostId,
      requestId: `${run.id}/${stepId}/${attempt}`,
      traceId: run.traceId,
      parentSpanId: run.spanId,
      timeoutMs: Math.min(step.timeoutMs, declared.timeoutMs ?? step.timeoutMs),
      signal: step.signal,
      alone: step.alone,
      begun: step.begun,
      log: step.log,
    });
  } catch (error) {
    const known = pluginAwayOf(error, declared.pluginId) ?? interruptedOf(error);
    if (known) throw known;
    // An error that the handler throws becomes STEP_FAILED. An error from before the start of the handler keeps its
    // code. @spec STEP_FAILED
    if (error instanceof PlatformError && error.code === 'EXECUTION_ERROR')
      throw handlerFailure(
        { code: 'STEP_FAILED', message: error.message, details: error.details },
        error.details.code,
      );
    throw error;
  }
}

function resultFailure({ error, exitCode }: CommandResult): StepFailure {
  const message = error?.message ?? `The handler ended with exit code ${exitCode}.`;
  const told = { code: error?.code ?? 'STEP_FAILED', message, details: error?.details ?? {} };
  return handlerFailure(told, error?.code);
}

/**
 * Returns the failure of a handler call. The error details can set `errorClass` and `retryAfterMs`. By default, the
 * error code determines the class.
 */
function handlerFailure(error: RunError, code: unknown): StepFailure {
  const said = ErrorClass.safeParse(error.details.errorClass);
  const retryAfter = error.details.retryAfterMs;
  return new StepFailure(
    said.success ? said.data : classOfCode(typeof code === 'string' ? code : undefined),
    error,
    typeof retryAfter === 'number' && retryAfter > 0 ? retryAfter : null,
  );
}
