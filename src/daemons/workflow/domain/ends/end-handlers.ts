import { LIMITS } from '../../../../contracts/index.ts';
import { typeName } from '../../../../kit/data/schema-problems.ts';
import { messageOf, PlatformError, toPlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { redactJson } from '../../../../kit/telemetry/redact.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { hours, seconds } from '../../../../kit/time/duration.ts';
import type { EndTask, EndTaskStore, JsonValue, RunRecord, RunStore } from '../../../../store/ports/index.ts';
import type { CompiledEndHandler } from '../definition/compiled-workflow.ts';
import { expressionFault } from '../definition/definition-faults.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { Evaluable } from '../definition/templates.ts';
import { Ticker } from '../engine/ticker.ts';
import { endScope } from '../run/ended-run.ts';
import { END_KEY_PREFIX } from '../starts/idempotency.ts';
import type { Starter } from '../starts/run-admission.ts';
import type { RunStarter } from '../starts/run-starter.ts';
import { isTransientStart } from '../starts/transient-start.ts';

/** A message that the end of a run sends. */
export interface RunMessage {
  type: string;
  data: JsonValue;
  application?: string | undefined;
  idempotencyKey: string;
}

export type SendRunMessage = (
  who: Starter,
  message: RunMessage,
  signal: AbortSignal,
) => Promise<{ id: string }>;

export interface EndHandlersDeps {
  tasks: EndTaskStore;
  runs: Pick<RunStore, 'find'>;
  definitions: Pick<Definitions, 'byHash' | 'require'>;
  starter: Pick<RunStarter, 'start'>;
  evaluator: Evaluator;
  send: SendRunMessage;
  clock: Clock;
  random: Random;
  logger: Logger;
}

/** Maximum number of started workflows in a chain. A workflow that fails can have handlers of its own. */
export const MAX_HANDLER_DEPTH = 3;
const MAX_CONCURRENT = 50;
/** Maximum number of concurrent sends. The other slots are for starts, which do not depend on the gateway. */
const MAX_SENDS = 40;
/** Time after which another process repeats the task of a killed one. A repeated start or message has the same key. */
const CLAIM_MS = seconds(10);
/** Maximum duration of a send. It is below `CLAIM_MS`, so that no other process repeats a send that is in flight. */
export const SEND_TIMEOUT_MS = CLAIM_MS / 2;
const MIN_RETRY_MS = seconds(1);
const MAX_RETRY_MS = seconds(60);
const MAX_SLOW_RETRY_MS = hours(1);
/** Errors that usually last for hours. */
const SLOW_ERRORS: ReadonlySet<string> = new Set(['WORKFLOW_NOT_FOUND', 'QUOTA_EXCEEDED']);

/** Starts the workflows and sends the messages of `on.failure` and `on.success`. @spec docs/workflows.md "When a run has ended" */
export class EndHandlers {
  readonly #deps: EndHandlersDeps;
  readonly #ticker: Ticker;
  readonly #stopped = new AbortController();
  readonly #inFlight = new Set<Promise<void>>();
  #sends = 0;
  #isStarted = false;

  constructor(deps: EndHandlersDeps) {
    this.#deps = deps;
    this.#ticker = new Ticker({ clock: deps.clock, logger: deps.logger, look: () => this.#look() });
  }

  start(): void {
    this.#isStarted = true;
    void this.#ticker.tick();
  }

  /** Handles the end of a run now, instead of at the next look. */
  ended({ endTasks }: Pick<RunRecord, 'endTasks'>): void {
    if (endTasks !== null && this.#isStarted) void this.#ticker.tick();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#ticker.stop();
    await Promise.all(this.#inFlight);
  }

  /** Claims due tasks for all free slots. Returns the time of the next task. */
  async #look(): Promise<number | null> {
    const { tasks, clock } = this.#deps;
    for (;;) {
      const free = MAX_CONCURRENT - this.#inFlight.size;
      if (free === 0 || this.#stopped.signal.aborted) return null;
      const now = clock.now();
      const due = await tasks.claim({ now, until: now + CLAIM_MS }, free);
      for (const task of due) this.#begin(task);
      if (due.length < free) return tasks.nextDue();
    }
  }

  /** Handles a task in a slot. A task that ends makes room for the next one if all slots were taken. */
  #begin(task: EndTask): void {
    const { logger } = this.#deps;
    const work = this.#handle(task)
      .catch((error: unknown) =>
        logger.error(`The task ${task.key} of an ended run failed: ${messageOf(error)}`, { error }),
      )
      .finally(() => {
        const wasFull = this.#inFlight.size === MAX_CONCURRENT;
        this.#inFlight.delete(work);
        if (wasFull) void this.#ticker.tick();
      });
    this.#inFlight.add(work);
  }

  async #handle(task: EndTask): Promise<void> {
    const { tasks, runs, clock } = this.#deps;
    const run = await runs.find(null, task.runId);
    // Retention deletes runs without their tasks.
    if (!run) {
      this.#reportGone(task);
      return tasks.finish(task.key, null);
    }
    try {
      await this.#perform(task, run);
    } catch (thrown) {
      const error = toPlatformError(thrown);
      const isOver = clock.now() - task.endedAt > LIMITS.idempotencyWindowMs;
      const isStopped = this.#stopped.signal.aborted;
      const isRetried = isStopped || (!isOver && isTransient(error));
      if (!isStopped) this.#report(task, run, error, isRetried);
      if (isRetried) return tasks.postpone(task.key, clock.now() + this.#retryMs(task, error.code));
      const { code, message } = error;
      const data = redactJson({ handler: task.handler, code, message }, run.tenantId);
      await tasks.finish(task.key, { at: clock.now(), type: 'run.handler_failed', data });
    }
  }

  async #perform(task: EndTask, run: RunRecord): Promise<void> {
    const { tasks, definitions, clock } = this.#deps;
    const workflow = await definitions.byHash(run.definitionHash);
    const handler = workflow.endHandlers[task.handler];
    if (!handler || !(await this.#evaluated(handler.condition, run))) return tasks.finish(task.key, null);
    if ('workflowId' in handler) return this.#start(task, run, handler);
    if (this.#sends >= MAX_SENDS) return tasks.postpone(task.key, clock.now() + this.#retryMs(task));
    this.#sends++;
    try {
      const { id } = await this.#send(task, run, handler);
      const data = { messageId: id, messageType: handler.type };
      await tasks.finish(task.key, { at: clock.now(), type: 'run.message_sent', data });
    } finally {
      this.#sends--;
    }
  }

  /**
   * The store deletes the task with the start. A run that was started before with the same key leaves the task, so it
   * is deleted here.
   */
  async #start(
    { key }: EndTask,
    run: RunRecord,
    { workflowId, input }: Extract<CompiledEndHandler, { workflowId: string }>,
  ): Promise<void> {
    const { tasks, definitions, starter, clock } = this.#deps;
    if (run.handlerDepth >= MAX_HANDLER_DEPTH)
      throw new PlatformError(
        'VALIDATION_ERROR',
        `Handlers of ended runs start each other ${MAX_HANDLER_DEPTH} levels deep; this one would go deeper.`,
      );
    const { id } = await starter.start(
      {
        kind: 'workflow',
        workflow: definitions.require(workflowId),
        input: await this.#evaluated(input, run),
        trigger: 'run_end',
        idempotency: { key: END_KEY_PREFIX + key, request: null },
        handles: key,
        handlerDepth: run.handlerDepth + 1,
      },
      starterOf(run),
    );
    await tasks.finish(key, {
      ...{ at: clock.now(), type: 'run.handler_started', data: { runId: id, workflowId } },
    });
  }

  async #send(
    { key }: EndTask,
    run: RunRecord,
    { type, data, application }: Extract<CompiledEndHandler, { type: string }>,
  ): Promise<{ id: string }> {
    const message = {
      ...{ type, data: await this.#evaluated(data, run), idempotencyKey: END_KEY_PREFIX + key },
      ...(application && { application: applicationOf(await this.#evaluated(application, run)) }),
    };
    return this.#deps.send(starterOf(run), message, this.#stopped.signal);
  }

  async #evaluated<Value>(what: Evaluable<Value>, run: RunRecord): Promise<Value> {
    try {
      return await this.#deps.evaluator.evaluate(what, endScope(run), run.tenantId);
    } catch (error) {
      throw expressionFault(error);
    }
  }

  #retryMs({ attempts }: EndTask, code?: string): number {
    const limit = code !== undefined && SLOW_ERRORS.has(code) ? MAX_SLOW_RETRY_MS : MAX_RETRY_MS;
    const most = Math.min(limit, MIN_RETRY_MS * 2 ** Math.min(attempts - 1, 12));
    return Math.round(most * (0.5 + this.#deps.random.fraction() / 2));
  }

  /** Logs the first retry and the failure that ends the retries. */
  #report({ handler, attempts }: EndTask, run: RunRecord, error: PlatformError, isRetried: boolean): void {
    if (isRetried && attempts > 1) return;
    const { id, workflowId, tenantId, requestId, traceId } = run;
    this.#deps.logger.diagnostic(
      {
        domain: 'workflow',
        event: 'run.handler_failed',
        level: isRetried ? 'warn' : 'error',
        reasonCode: error.code,
        message: `Handler ${handler} of the end of run ${id} of "${workflowId}" failed${isRetried ? ' and is tried again' : ''}: ${error.message}`,
        outcome: isRetried ? 'degraded' : 'failed',
        evidence: { runId: id, workflowId, handler },
      },
      { tenantId, requestId, traceId },
    );
  }

  #reportGone({ handler, runId, attempts }: EndTask): void {
    this.#deps.logger.diagnostic({
      domain: 'workflow',
      event: 'run.handler_failed',
      level: 'error',
      reasonCode: 'WORKFLOW_RUN_NOT_FOUND',
      message: `Handler ${handler} of the end of run ${runId} did not act in ${attempts} attempts, because retention deleted the run. Raise retention.runsDays to retry for longer.`,
      outcome: 'failed',
      evidence: { runId, handler },
    });
  }
}

/**
 * Errors that can pass. A missing workflow may be registered by the next release of a plugin, and a concurrency key
 * becomes free. A gateway answers the other codes while it has an earlier version or another internal secret.
 */
const TRANSIENT: ReadonlySet<string> = new Set([
  ...['WORKFLOW_NOT_FOUND', 'CONCURRENT_LIMIT_EXCEEDED'],
  ...['UNAUTHORIZED', 'NOT_FOUND', 'METHOD_NOT_ALLOWED'],
]);

function isTransient(error: PlatformError): boolean {
  return TRANSIENT.has(error.code) || isTransientStart(error);
}

/** Throws VALIDATION_ERROR for other values, because a message without application reaches other endpoints. */
function applicationOf(value: JsonValue): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string' && value !== '') return value;
  const returned = value === '' ? 'an empty string' : typeName(value);
  throw new PlatformError(
    'VALIDATION_ERROR',
    `message.application must be a non-empty string; its expression returned ${returned}. The message was not sent.`,
  );
}

function starterOf({ tenantId, hostId, requestId, traceId, deliveryId }: RunRecord): Starter {
  return { tenantId, hostId, requestId, traceId, deliveryId };
}
