import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import { DueRuns, type DueRunsDeps } from './due-runs.ts';
import type { EngineHost } from './ports.ts';
import { ReadyQueue, type ReadyQueueDeps, type ReadyRun } from './ready-queue.ts';
import type { RunSource } from './run-source.ts';

export interface LocalRunsDeps {
  queue: DueRunsDeps['queue'] & ReadyQueueDeps['queue'];
  slots: DueRunsDeps['slots'];
  suspects: DueRunsDeps['suspects'];
  host: Pick<EngineHost, 'isWorking' | 'requestTick'>;
  logger: Logger;
  /** Claims a run. Returns false if its tenant has no free slot. */
  claim(ready: ReadyRun): boolean;
  release: DueRunsDeps['release'];
}

/** Runs of a store that no other process uses. Ready runs are claimed from memory where possible. */
export class LocalRuns implements RunSource {
  readonly #deps: LocalRunsDeps;
  readonly #ready: ReadyQueue;
  readonly #due: DueRuns;
  #isPumping = false;

  constructor(deps: LocalRunsDeps) {
    const { queue, slots, suspects, release, claim } = deps;
    this.#deps = deps;
    this.#ready = new ReadyQueue({ queue, slots, suspects: suspects.limit });
    this.#due = new DueRuns({
      ...{ queue, slots, suspects, release },
      claim: (run) => claim({ run, fresh: false }),
    });
  }

  offer(run: RunRecord, fresh: boolean): void {
    this.#ready.offer({ run, fresh });
    this.#pump();
  }

  stale(runId: string): void {
    this.#ready.stale(runId);
  }

  staleWorkflow(workflow: Pick<RunRecord, 'tenantId' | 'workflowId'>): void {
    this.#ready.staleWorkflow(workflow);
  }

  refresh(): Promise<void> {
    return this.#ready.refresh();
  }

  async look(now: number): Promise<number | null> {
    const next = await this.#due.look(now);
    this.#pump();
    return next;
  }

  slotReleased(): void {
    if (this.#due.claimNext()) this.#pump();
    else this.#deps.host.requestTick();
  }

  /**
   * Claims ready runs within their tenants' fair shares. Runs in memory are claimed at once; other runs are read from
   * the store first.
   */
  #pump(): void {
    const { host, claim } = this.#deps;
    while (host.isWorking) {
      const next = this.#ready.next();
      if (!next) break;
      claim(next);
    }
    if (host.isWorking && this.#ready.isBehind && !this.#isPumping) void this.#pumpFromStore();
  }

  async #pumpFromStore(): Promise<void> {
    const { host, logger } = this.#deps;
    this.#isPumping = true;
    try {
      while (host.isWorking && this.#ready.isBehind) {
        await this.#ready.read();
        this.#pump();
        // The query returns claimed runs until their claims are written, so a page may consist of claimed runs only.
        await nextTurn();
      }
    } catch (error) {
      logger.error('Queued runs could not be read; the next attempt follows in a second', { error });
    } finally {
      this.#isPumping = false;
    }
  }
}
