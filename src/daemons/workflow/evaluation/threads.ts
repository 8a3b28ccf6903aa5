import { createFairQueue } from '../../../kit/limits/fair-queue.ts';
import { type Clock, systemClock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { ConfinedThreads } from '../domain/definition/evaluator.ts';
import { type EvaluationThread, startEvaluationThread, type Waiting } from './thread.ts';

/** A second thread serves other tasks while the first runs a long one. */
const MOST_THREADS = 2;
/** Maximum tasks sent to one thread, so that it starts the next without a round trip. */
const MOST_SENT = 8;
const IDLE_MS = minutes(1);

/** Thread pool for expressions: the first task starts a thread, and an idle minute ends it. */
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

  /** Returns the least busy thread: an idle one, else a new one, else one with room. */
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
