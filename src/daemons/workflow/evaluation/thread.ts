import { Worker } from 'node:worker_threads';
import { codeOf, messageOf } from '../../../kit/errors/errors.ts';
import { entryFile } from '../../../kit/files/paths.ts';
import { every, systemClock } from '../../../kit/time/clock.ts';
import type { ConfinedTask } from '../domain/definition/evaluator.ts';
import { formatPath, TemplateError } from '../domain/definition/templates.ts';
import type { TaskMessage, TaskReply, ThreadStart } from './protocol.ts';

export interface Waiting {
  task: ConfinedTask;
  tenantId: string;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Time limit of a task. The limit uses the system clock, even in tests with a fake clock. */
const TIME_LIMIT_MS = 1000;
const LOOK_MS = 100;
const MEMORY_MB = 256;

export interface ThreadEvents {
  /** Callback that is called when a task has ended, so that another task can start. */
  onFree(): void;
  /**
   * Callback that is called when the thread has ended. `lost` contains the tasks that were queued behind the failed
   * task.
   */
  onGone(lost: Waiting[]): void;
}

/**
 * A worker thread that runs tasks one at a time. A task that exceeds its time or memory limit ends the thread. `onGone`
 * receives the queued tasks, so that another thread can run them.
 */
export class EvaluationThread {
  readonly #events: ThreadEvents;
  /** Id of the running task, or 0 between tasks. The memory is shared with the thread. */
  readonly #current = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  readonly #worker: Worker;
  readonly #sent = new Map<number, Waiting>();
  readonly #stopWatching: () => void;
  #lastId = 0;
  #seen = { id: 0, since: 0 };
  #isGone = false;

  constructor(events: ThreadEvents) {
    this.#events = events;
    this.#worker = new Worker(entryFile('evaluator'), {
      name: 'expressions',
      workerData: { current: this.#current } satisfies ThreadStart,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, maxYoungGenerationSizeMb: 32 },
    });
    this.#stopWatching = every(systemClock, LOOK_MS, () => this.#watch());
    this.#worker.unref();
    this.#worker.on('message', (reply: TaskReply) => this.#settle(reply));
    this.#worker.on('error', (error) => this.#end((task) => limit(task, deathOf(error))));
    this.#worker.on('exit', () => this.#end((task) => limit(task, 'its thread ended')));
  }

  /** Number of tasks that run or are queued in the thread. */
  get load(): number {
    return this.#sent.size;
  }

  send(waiting: Waiting): void {
    const id = ++this.#lastId;
    this.#sent.set(id, waiting);
    this.#worker.ref();
    this.#worker.postMessage({ id, task: waiting.task } satisfies TaskMessage);
  }

  async close(): Promise<void> {
    this.#isGone = true;
    this.#stopWatching();
    for (const { reject } of this.#sent.values()) reject(new Error('The service is stopping.'));
    this.#sent.clear();
    await this.#worker.terminate();
  }

  #settle(reply: TaskReply): void {
    const waiting = this.#sent.get(reply.id);
    this.#sent.delete(reply.id);
    if (this.#sent.size === 0) this.#worker.unref();
    if (reply.ok) waiting?.resolve(reply.value);
    else {
      const { message, path, isLimit } = reply.error;
      waiting?.reject(new TemplateError(message, path, isLimit));
    }
    if (!this.#isGone) this.#events.onFree();
  }

  #watch(): void {
    const id = Atomics.load(this.#current, 0);
    if (id === 0 || id !== this.#seen.id) this.#seen = { id, since: performance.now() };
    else if (performance.now() - this.#seen.since > TIME_LIMIT_MS)
      this.#end((task) => limit(task, `it took longer than ${TIME_LIMIT_MS} ms`));
  }

  /** Ends the thread and fails the current task. If the thread has not set a current task yet, the first task fails. */
  #end(failure: (task: ConfinedTask) => Error): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#stopWatching();
    const failed = Atomics.load(this.#current, 0) || this.#sent.keys().next().value;
    const lost: Waiting[] = [];
    for (const [id, waiting] of this.#sent) {
      if (id === failed) waiting.reject(failure(waiting.task));
      else lost.push(waiting);
    }
    this.#sent.clear();
    void this.#worker.terminate();
    this.#events.onGone(lost);
  }
}

function deathOf(error: unknown): string {
  return codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY'
    ? `it needs more than ${MEMORY_MB} MB`
    : `its thread ended: ${messageOf(error)}`;
}

function limit(task: ConfinedTask, why: string): TemplateError {
  const path = task.kind === 'evaluate' ? task.written.path : [task.part];
  return new TemplateError(`${formatPath(path)}: ${why}`, path, true);
}
