import { createFairQueue } from '../../../kit/limits/fair-queue.ts';
import { type Clock, systemClock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { ConfinedTask, ConfinedThreads } from '../domain/definition/evaluator.ts';
import { EvaluationThread, type Waiting } from './thread.ts';

/** Maximum number of threads. The second thread serves other tasks while the first thread runs a long task. */
const MAX_THREADS = 2;
/**
 * Maximum number of tasks sent to one thread. The next task in the thread can then start without a round trip to the
 * main thread.
 */
const MAX_SENT = 8;
const IDLE_MS = minutes(1);

/** Thread pool for expressions. The first task starts a thread. Idle threads end after a minute without new tasks. */
export class EvaluationThreads implements ConfinedThreads {
  readonly #clock: Clock;
  readonly #threads = new Set<EvaluationThread>();
  readonly #waiting = createFairQueue<Waiting>();
  #stopIdle: () => void = () => {};
  #isClosed = false;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  run(task: ConfinedTask, tenantId: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new Error('The service is stopping.'));
      this.#waiting.add(tenantId, { task, tenantId, resolve, reject });
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopIdle();
    for (const { reject } of this.#waiting.clear()) reject(new Error('The service is stopping.'));
    await Promise.all([...this.#threads].map((thread) => thread.close()));
  }

  #open(): EvaluationThread {
    const thread = new EvaluationThread({
      onFree: () => this.#dispatch(),
      onGone: (lost) => {
        this.#threads.delete(thread);
        for (const one of lost) this.#waiting.add(one.tenantId, one);
        this.#dispatch();
      },
    });
    this.#threads.add(thread);
    return thread;
  }

  /**
   * Prefers an idle thread, then a new thread, then the least busy thread. Returns undefined if all threads are full.
   */
  #threadWithRoom(): EvaluationThread | undefined {
    const [best] = [...this.#threads].sort((a, b) => a.load - b.load);
    if (best?.load === 0) return best;
    if (this.#threads.size < MAX_THREADS) return this.#open();
    return best && best.load < MAX_SENT ? best : undefined;
  }

  #dispatch(): void {
    while (this.#waiting.size > 0 && !this.#isClosed) {
      const thread = this.#threadWithRoom();
      if (!thread) return;
      thread.send(this.#waiting.next(() => true)!);
    }
    this.#stopIdle();
    this.#stopIdle = this.#clock.after(IDLE_MS, () => this.#endIdle());
  }

  #endIdle(): void {
    for (const thread of this.#threads) {
      if (thread.load > 0) continue;
      this.#threads.delete(thread);
      void thread.close();
    }
  }
}
