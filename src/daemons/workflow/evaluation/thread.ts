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

/** Time limit of a task, in real time even when tests move the clock. */
const TIME_LIMIT_MS = 1000;
const LOOK_MS = 100;
const MEMORY_MB = 256;

export interface EvaluationThread {
  readonly load: number;
  send(waiting: Waiting): void;
  close(): Promise<void>;
}

/**
 * Starts a thread that runs tasks one at a time. A task that exceeds its time or memory fails and ends the thread; the
 * tasks queued behind it are returned as `lost`.
 */
export function startEvaluationThread(events: {
  onFree(): void;
  onGone(lost: Waiting[]): void;
}): EvaluationThread {
  const current = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = new Worker(entryFile('evaluator'), {
    name: 'expressions',
    workerData: { current } satisfies ThreadStart,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, maxYoungGenerationSizeMb: 32 },
  });
  const sent = new Map<number, Waiting>();
  let lastId = 0;
  let seen = { id: 0, since: 0 };
  let isGone = false;
  const stopWatching = every(systemClock, LOOK_MS, watch);
  worker.unref();

  function watch(): void {
    const id = Atomics.load(current, 0);
    if (id === 0 || id !== seen.id) seen = { id, since: performance.now() };
    else if (performance.now() - seen.since > TIME_LIMIT_MS)
      end((task) => limit(task, `it took longer than ${TIME_LIMIT_MS} ms`));
  }

  /** Fails the current task, or the first one if the thread died while reading it. */
  function end(failure: (task: ConfinedTask) => Error): void {
    if (isGone) return;
    isGone = true;
    stopWatching();
    const guilty = Atomics.load(current, 0) || sent.keys().next().value;
    const lost: Waiting[] = [];
    for (const [id, waiting] of sent) {
      if (id === guilty) waiting.reject(failure(waiting.task));
      else lost.push(waiting);
    }
    sent.clear();
    void worker.terminate();
    events.onGone(lost);
  }

  worker.on('message', (reply: TaskReply) => {
    const waiting = sent.get(reply.id);
    sent.delete(reply.id);
    if (sent.size === 0) worker.unref();
    if (reply.ok) waiting?.resolve(reply.value);
    else {
      const { message, path, isLimit } = reply.error;
      waiting?.reject(new TemplateError(message, path, isLimit));
    }
    if (!isGone) events.onFree();
  });
  worker.on('error', (error) =>
    end((task) =>
      codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY'
        ? limit(task, `it needs more than ${MEMORY_MB} MB`)
        : limit(task, `its thread ended: ${messageOf(error)}`),
    ),
  );
  worker.on('exit', () => end((task) => limit(task, 'its thread ended')));

  return {
    get load() {
      return sent.size;
    },
    send(waiting) {
      const id = ++lastId;
      sent.set(id, waiting);
      worker.ref();
      worker.postMessage({ id, task: waiting.task } satisfies TaskMessage);
    },
    async close() {
      isGone = true;
      stopWatching();
      for (const { reject } of sent.values()) reject(new Error('The service is stopping.'));
      sent.clear();
      await worker.terminate();
    },
  };
}

function limit(task: ConfinedTask, why: string): TemplateError {
  const path = task.kind === 'evaluate' ? task.written.path : ['input'];
  return new TemplateError(`${formatPath(path)}: ${why}`, path, true);
}
