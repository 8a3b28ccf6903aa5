import { messageOf } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { RunRecord, RunStore, RunWrite, WriteResult } from '../../../../store/ports/index.ts';
import type { Changes } from './write-buffer.ts';

export interface RunWriterDeps {
  store: Pick<RunStore, 'write'>;
  clock: Clock;
  logger: Logger;
  /**
   * Callback that is called after each write. The callback queues runs that the write made ready and notifies clients
   * that watch the run.
   */
  written(run: RunRecord, result: WriteResult): void;
}

const MIN_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5000;

/**
 * Persists the changes of a run in one transaction per batch. The store rejects a batch with an outdated fence token.
 */
export class RunWriter {
  readonly #deps: RunWriterDeps;
  readonly #run: RunRecord;
  #expected: RunWrite['expect'];
  #isStopped = false;

  constructor(run: RunRecord, deps: RunWriterDeps) {
    this.#deps = deps;
    this.#run = run;
    this.#expected = { fence: run.fence, status: run.status };
  }

  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Writes changes. Retries store errors with backoff, for example if the disk is full. Returns false if another
   * process owns the run or if `stop` was called.
   */
  async persist(changes: Changes, inboxSeen: number): Promise<boolean> {
    const { store, clock, written } = this.#deps;
    const { seq, finishedAt, parentId } = this.#run;
    const wakeParent = finishedAt === null ? null : parentId;
    const write = { seq, expect: this.#expected, ...changes, inboxSeen, wakeParent, at: clock.now() };
    for (let pauseMs = MIN_PAUSE_MS; !this.#isStopped; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        const result = await store.write(write);
        if (!result.applied) return false;
        if (write.run) this.#expected = { fence: write.run.fence, status: write.run.status };
        written(this.#run, result);
        return true;
      } catch (error) {
        this.#report(error);
        await new Promise<void>((resolve) => clock.after(pauseMs, resolve));
      }
    }
    return false;
  }

  #report(error: unknown): void {
    const { id } = this.#run;
    this.#deps.logger.diagnostic({
      domain: 'workflow',
      event: 'run.write_failed',
      level: 'error',
      reasonCode: 'STORE_ERROR',
      message: `The progress of run ${id} could not be written (${messageOf(error)}); tried again`,
      outcome: 'degraded',
      error,
      evidence: { runId: id },
    });
  }
}
