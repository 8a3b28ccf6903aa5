import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunRecord, RunStore, SharedRunStore } from '../../../../store/ports/index.ts';
import { cleansUp } from '../definition/cleans-up.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import { isFinal } from '../states.ts';
import type { ActiveRun } from './active-run.ts';
import type { CancelResult, EngineHost } from './ports.ts';

export interface CancellingDeps {
  store: { runs: Pick<RunStore, 'find' | 'openChildren' | 'cancelIdle' | 'beginCleanUp'> };
  clock: Clock;
  logger: Logger;
  active: ReadonlyMap<string, ActiveRun>;
  /**
   * Runs that are being loaded from the store. Each promise settles when the run was added to `active` or was dropped.
   */
  opening: ReadonlyMap<string, Promise<void>>;
  /** Returns the definition with this hash. Throws if the definition cannot be read or compiled. */
  definitionOf(hash: string): Promise<CompiledWorkflow>;
  /** Undefined if no other process executes runs of the store. */
  owners?:
    | { store: Pick<SharedRunStore, 'requestCancel'>; notify(owner: number): Promise<boolean> }
    | undefined;
  changed(runId: string): void;
  host: Pick<EngineHost, 'offer' | 'requestTick' | 'isWorking' | 'ended' | 'fence'>;
}

const MAX_TRIES = 50;
const RETRY_MS = seconds(1);
/** Longer than the takeover from a process that has ended, in which its runs cannot be cancelled. */
const MAX_OWNER_WAIT_MS = seconds(20);
const OWNER_RETRY_MS = 25;

/** Cancels runs and their child runs, whether the runs are in memory, being loaded or only stored. */
export class Cancelling {
  readonly #deps: CancellingDeps;

  constructor(deps: CancellingDeps) {
    this.#deps = deps;
  }

  /** Cancels a run. Throws WORKFLOW_ALREADY_CANCELLED, or CONFLICT if the run changed during each attempt. */
  async cancel(run: RunRecord): Promise<CancelResult> {
    const request = { isMade: false };
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const result = (await this.#cancelByOwner(run, request)) ?? (await this.#tryCancel(run));
      if (result) return result;
    }
    throw new PlatformError('CONFLICT', `Run ${run.id} changes too fast to be cancelled; try again.`);
  }

  /**
   * Cancels the child runs of an ended run. Failures are only logged, because the next start of the service cancels the
   * remaining child runs.
   */
  async cancelChildren(id: string): Promise<void> {
    try {
      for (const child of await this.#deps.store.runs.openChildren(id)) await this.cancelById(child);
    } catch (error) {
      this.#deps.logger.error(`The children of run ${id} could not be cancelled`, { error });
    }
  }

  /**
   * Cancels a child run or a superseded run. On failure, returns false and retries in the background, because other
   * runs wait for the end of the run.
   */
  async cancelById(id: string): Promise<boolean> {
    const { store, clock, logger, host } = this.#deps;
    try {
      const run = await store.runs.find(null, id);
      if (run && !isFinal(run.status)) await this.cancel(run);
      return true;
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'WORKFLOW_ALREADY_CANCELLED') return true;
      const what = `Run ${id} could not be cancelled; the next attempt follows in a second`;
      logger.error(what, { error });
      clock.after(RETRY_MS, () => {
        if (host.isWorking) void this.cancelById(id);
      });
      return false;
    }
  }

  /**
   * Cancels runs superseded under their concurrency key. The store has already recorded the cancellations, so that a
   * crash cannot lose any cancellation.
   */
  async supersede(ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.cancelById(id);
  }

  /**
   * Lets the process that executes the run cancel it. Returns undefined if no other process executes the run. Throws
   * SERVICE_UNAVAILABLE if the owner does not react; it cancels the run later, or the next owner does.
   */
  async #cancelByOwner(
    { id, tenantId }: RunRecord,
    request: { isMade: boolean },
  ): Promise<CancelResult | undefined> {
    const { store, owners, clock, host, changed } = this.#deps;
    if (!owners) return undefined;
    const until = clock.monotonic() + MAX_OWNER_WAIT_MS;
    for (let waitMs = 0; clock.monotonic() < until; ) {
      const run = await store.runs.find(tenantId, id);
      const isCancelled = run?.status === 'cancelled' || run?.ending === 'cancelled';
      if (run && request.isMade && (isCancelled || isFinal(run.status))) {
        changed(id);
        return { cancelled: isCancelled, status: run.status };
      }
      const isOwnedElsewhere = run && run.fence !== null && run.fence !== host.fence;
      if (!isOwnedElsewhere || run.status === 'cancelling') return undefined;
      if (waitMs > 0) await new Promise<void>((resolve) => clock.after(waitMs, resolve));
      await owners.store.requestCancel(run.seq);
      request.isMade = true;
      // An owner that was reached has cancelled the run by now, unless the run is about to leave its memory.
      waitMs = (await owners.notify(run.fence!)) ? OWNER_RETRY_MS : RETRY_MS;
    }
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      `The service that executes run ${id} does not answer. The run is cancelled once it does, or once another service takes over.`,
      { details: { runId: id } },
    );
  }

  /** Tries once to cancel a run. Returns undefined if the run changed concurrently. */
  async #tryCancel({ id, tenantId }: RunRecord): Promise<CancelResult | undefined> {
    const { store, clock, active, opening, host } = this.#deps;
    await opening.get(id);
    const one = active.get(id);
    if (one && (await one.cancel())) return { cancelled: true, status: one.run.status };
    // The run has left memory or is about to leave memory, so its stored status is used.
    if (one && !['cancelling', 'cancelled'].includes(one.run.status)) await one.left;
    const run = await store.runs.find(tenantId, id);
    if (!run || run.status === 'cancelled' || (run.status === 'cancelling' && run.ending === 'cancelled'))
      throw alreadyCancelled(id);
    // At this point, the status `cancelling` means that the run timed out and is already cleaning up.
    if (run.status === 'cancelling' || isFinal(run.status)) return { cancelled: false, status: run.status };
    if (run.startedAt !== null && (await this.#endsLater(run))) {
      if (!(await store.runs.beginCleanUp(run.seq, clock.now()))) return undefined;
      this.#deps.changed(id);
      host.requestTick();
      return { cancelled: true, status: 'cancelling' };
    }
    const { cancelled, promoted } = await store.runs.cancelIdle(run.seq, clock.now());
    if (!cancelled) return undefined;
    for (const next of promoted) host.offer(next, false);
    this.#deps.changed(id);
    host.ended({ ...run, status: 'cancelled', finishedAt: clock.now() });
    await this.cancelChildren(id);
    return { cancelled: true, status: 'cancelled' };
  }

  /**
   * Returns whether the run can have clean-up steps or has unfinished child runs. Both must end before the run can end.
   * Returns false if the definition is lost.
   */
  async #endsLater({ id, definitionHash }: RunRecord): Promise<boolean> {
    try {
      const workflow = await this.#deps.definitionOf(definitionHash);
      return cleansUp(workflow) || (await this.#deps.store.runs.openChildren(id)).length > 0;
    } catch (error) {
      if (isLostDefinition(error)) return false;
      throw error;
    }
  }
}

function alreadyCancelled(id: string): PlatformError {
  return new PlatformError(
    'WORKFLOW_ALREADY_CANCELLED',
    `Run ${id} is already cancelled or being cancelled.`,
    {
      details: { runId: id },
    },
  );
}
