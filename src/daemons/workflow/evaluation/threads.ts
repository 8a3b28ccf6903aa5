import { type Clock, systemClock } from '../../../kit/clock.ts';
import { minutes } from '../../../kit/duration.ts';
import { createFairQueue } from '../../../kit/fair-queue.ts';
import type { ConfinedThreads } from '../domain/definition/evaluator.ts';
import { type EvaluationThread, startEvaluationThread, type Waiting } from './thread.ts';

/** While one works on what takes its time, there is another. */
const MOST_THREADS = 2;
/** Tasks that one thread has been sent: the next is there when it is done with one. */
const MOST_SENT = 8;
const IDLE_MS = minutes(1);

/** Threads for expressions: the first task starts one, and an idle minute ends them. */
export function createEvaluationThreads(clock: Clock = systemClock): ConfinedThreads {
  const threads = new Set<EvaluationThread>();
  const waiting = createFairQueue<Waiting>();
  let stopIdle = (): void => {};
  let isClosed = false;

  function open(): EvaluationThread {
    const thread = startEvaluationThread({
      onFree: dispatch,
      onGone(lost) {
        threads.delete(thread);
        for (const one of lost) waiting.add(one.tenantId, one);
        dispatch();
      },
    });
    threads.add(thread);
    return thread;
  }

  /** The least busy thread: an idle one before a new one, and that before one with work. */
  function threadWithRoom(): EvaluationThread | undefined {
    const [best] = [...threads].sort((a, b) => a.load - b.load);
    if (best?.load === 0) return best;
    if (threads.size < MOST_THREADS) return open();
    return best && best.load < MOST_SENT ? best : undefined;
  }

  function dispatch(): void {
    while (waiting.size > 0 && !isClosed) {
      const thread = threadWithRoom();
      if (!thread) return;
      thread.send(waiting.next(() => true)!);
    }
    stopIdle();
    stopIdle = clock.after(IDLE_MS, endIdle);
  }

  function endIdle(): void {
    for (const thread of threads) {
      if (thread.load > 0) continue;
      threads.delete(thread);
      void thread.close();
    }
  }

  return {
    run(task, tenantId) {
      return new Promise((resolve, reject) => {
        if (isClosed) return reject(new Error('The service is stopping.'));
        waiting.add(tenantId, { task, tenantId, resolve, reject });
        dispatch();
      });
    },
    async close() {
      isClosed = true;
      stopIdle();
      for (const { reject } of waiting.clear()) reject(new Error('The service is stopping.'));
      await Promise.all([...threads].map((thread) => thread.close()));
    },
  };
}
