import { END_KEY_PREFIX, LIMITS } from '../../../../contracts/index.ts';
import { typeName } from '../../../../kit/data/schema-problems.ts';
import { messageOf, PlatformError, toPlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { redactJson } from '../../../../kit/telemetry/redact.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { EndTask, EndTaskStore, JsonValue, RunRecord, RunStore } from '../../../../store/ports/index.ts';
import { hasEndTasks } from '../definition/compile-end-handlers.ts';
import type { CompiledEndHandler, CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { expressionFault, isLostDefinition } from '../definition/definition-faults.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { Evaluable } from '../definition/templates.ts';
import { Ticker } from '../engine/ticker.ts';
import type { Starter } from '../starts/run-admission.ts';
import type { RunStarter } from '../starts/run-starter.ts';
import { type EndedRun, endedRunReader } from './ended-run-reader.ts';
import { isTransient, reportFailure, reportGone, retryMs } from './handler-failures.ts';
import { SendSlots } from './send-slots.ts';

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
/** Maximum number of concurrent tasks, without those that wait for a send slot. Starts do not depend on the gateway. */
const MAX_CONCURRENT = 50;
/** Time after which another process repeats the task of a killed one. A repeated start or message has the same key. */
const CLAIM_MS = seconds(10);
/** Maximum duration of a send. It is below `CLAIM_MS`, so that no other process repeats a send that is in flight. */
export const SEND_TIMEOUT_MS = CLAIM_MS / 2;

type StartHandler = Extract<CompiledEndHandler, { workflowId: string }>;
type MessageHandler = Extract<CompiledEndHandler, { type: string }>;

/** An ended run and the task that handles its end. */
interface Ended {
  task: EndTask;
  run: EndedRun;
}

/**
 * Starts the workflows and sends the messages of `on.failure` and `on.success`.
 * @spec docs/workflows.md "When a run has ended"
 */
export class EndHandlers {
  readonly #deps: EndHandlersDeps;
  readonly #ticker: Ticker;
  readonly #stopped = new AbortController();
  readonly #inFlight = new Set<Promise<void>>();
  readonly #sendSlots: SendSlots;
  #isStarted = false;

  constructor(deps: EndHandlersDeps) {
    this.#deps = deps;
    this.#sendSlots = new SendSlots(deps.clock);
    const { clock, logger } = deps;
    const subject = 'Handlers of ended runs';
    this.#ticker = new Ticker({ clock, logger, subject, look: () => this.#look() });
  }

  start(): void {
    this.#isStarted = true;
    void this.#ticker.tick();
  }

  /** Handles the end of a run now, instead of at the next check. */
  ended(run: Pick<RunRecord, 'endTasks' | 'status'>): void {
    if (this.#isStarted && hasEndTasks(run)) void this.#ticker.tick();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#ticker.stop();
    await Promise.all(this.#inFlight);
  }

  get #free(): number {
    return MAX_CONCURRENT - this.#inFlight.size + this.#sendSlots.waiting;
  }

  /** Claims due tasks for all free slots. Returns the time of the next task. */
  async #look(): Promise<number | null> {
    const { tasks, runs, clock } = this.#deps;
    for (;;) {
      const free = this.#free;
      if (free <= 0 || this.#stopped.signal.aborted) return null;
      const now = clock.now();
      // A claim is a write also if no task is due.
      const next = await tasks.nextDue();
      if (next === null || next > now) return next;
      const due = await tasks.claim({ now, until: now + CLAIM_MS }, free);
      const read = endedRunReader(runs);
      for (const task of due) this.#begin(task, read(task.runId));
      if (due.length < free) return tasks.nextDue();
    }
  }

  /** Handles a task in a slot. A task that ends makes room for the next one if all slots were taken. */
  #begin(task: EndTask, run: Promise<EndedRun | undefined>): void {
    const { logger } = this.#deps;
    const work = this.#handle(task, run)
      .catch((error: unknown) =>
        logger.error(`The task ${task.key} of an ended run failed: ${messageOf(error)}`, { error }),
      )
      .finally(() => {
        this.#inFlight.delete(work);
        this.#tickIfFree();
      });
    this.#inFlight.add(work);
  }

  /** Claims the next task if all slots were taken before. */
  #tickIfFree(): void {
    if (this.#free === 1) void this.#ticker.tick();
  }

  async #handle(task: EndTask, reading: Promise<EndedRun | undefined>): Promise<void> {
    const { tasks, definitions, logger } = this.#deps;
    const run = await reading;
    // Retention deletes runs without their tasks.
    if (!run) {
      reportGone(logger, task);
      return tasks.finish(task.key, null);
    }
    const ended = { task, run };
    let workflow: CompiledWorkflow;
    try {
      workflow = await definitions.byHash(run.record.definitionHash);
    } catch (thrown) {
      return this.#fail(ended, toPlatformError(thrown), !isLostDefinition(thrown));
    }
    try {
      await this.#perform(ended, workflow.endHandlers[task.handler]);
    } catch (thrown) {
      const error = toPlatformError(thrown);
      await this.#fail(ended, error, isTransient(error));
    }
  }

  async #fail({ task, run: { record } }: Ended, error: PlatformError, canPass: boolean): Promise<void> {
    const { tasks, clock, logger, random } = this.#deps;
    if (this.#stopped.signal.aborted) return this.#release(task);
    const isOver = clock.now() - task.endedAt > LIMITS.idempotencyWindowMs;
    const isRetried = canPass && !isOver;
    reportFailure(logger, task, record, { error, isRetried });
    if (isRetried) return tasks.postpone(task.key, clock.now() + retryMs(task, error, random));
    const { code, message } = error;
    const data = redactJson({ handler: task.handler, code, message }, record.tenantId);
    await tasks.finish(task.key, { at: clock.now(), type: 'run.handler_failed', data });
  }

  /** Ends the claim of a task that has not been attempted. During a stop, another process may continue at once. */
  async #release({ key }: EndTask): Promise<void> {
    const { tasks, clock } = this.#deps;
    const dueAt = this.#stopped.signal.aborted ? clock.now() : this.#sendSlots.nextTry();
    await tasks.release(key, dueAt);
  }

  async #perform(ended: Ended, handler: CompiledEndHandler | undefined): Promise<void> {
    const { task, run } = ended;
    const { tenantId } = run.record;
    if (!handler) return this.#deps.tasks.finish(task.key, null);
    if ('workflowId' in handler) return this.#startIf(ended, handler);
    const { signal } = this.#stopped;
    const waits = () => this.#tickIfFree();
    if (!(await this.#sendSlots.take(tenantId, { signal, waits }))) return this.#release(task);
    try {
      await this.#sendIf(ended, handler);
    } finally {
      this.#sendSlots.release(tenantId);
    }
  }

  /**
   * Starts the workflow if the condition holds. The store deletes the task with the start. A repeated key finds a run
   * that may not have been started for this task, which is then deleted here.
   */
  async #startIf({ task: { key }, run }: Ended, handler: StartHandler): Promise<void> {
    const { tasks, definitions, starter, clock } = this.#deps;
    const { workflowId, input } = handler;
    const { handlerDepth } = run.record;
    if (!(await this.#evaluated(handler.condition, run))) return tasks.finish(key, null);
    if (handlerDepth >= MAX_HANDLER_DEPTH)
      throw new PlatformError(
        'VALIDATION_ERROR',
        `Handlers of ended runs start each other ${MAX_HANDLER_DEPTH} levels deep; this one would go deeper.`,
      );
    const { id, handles } = await starter.start(
      {
        kind: 'workflow',
        workflow: definitions.require(workflowId),
        input: await this.#evaluated(input, run),
        trigger: 'run_end',
        idempotency: { key: END_KEY_PREFIX + key, request: null },
        handles: key,
        handlerDepth: handlerDepth + 1,
      },
      starterOf(run.record),
    );
    if (handles === key) return;
    await tasks.finish(key, {
      at: clock.now(),
      type: 'run.handler_started',
      data: { runId: id, workflowId },
    });
  }

  /** Sends the message if the condition holds. */
  async #sendIf({ task: { key }, run }: Ended, handler: MessageHandler): Promise<void> {
    const { tasks, clock, send } = this.#deps;
    const { type, data, application } = handler;
    if (!(await this.#evaluated(handler.condition, run))) return tasks.finish(key, null);
    const message = {
      ...{ type, data: await this.#evaluated(data, run), idempotencyKey: END_KEY_PREFIX + key },
      ...(application && { application: applicationOf(await this.#evaluated(application, run)) }),
    };
    const { id } = await send(starterOf(run.record), message, this.#stopped.signal);
    const sent = { messageId: id, messageType: type };
    await tasks.finish(key, { at: clock.now(), type: 'run.message_sent', data: sent });
  }

  async #evaluated<Value>(what: Evaluable<Value>, { scope, record }: EndedRun): Promise<Value> {
    try {
      return await this.#deps.evaluator.evaluate(what, scope, record.tenantId);
    } catch (error) {
      throw expressionFault(error);
    }
  }
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
