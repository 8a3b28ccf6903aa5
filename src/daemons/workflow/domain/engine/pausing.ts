import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { PauseStore, RunRecord, RunStore, TenantWorkflow } from '../../../../store/ports/index.ts';
import { isFinal, isPaused } from '../states.ts';
import type { Claims } from './claims.ts';
import type { OwnerNotices } from './owner-notices.ts';
import type { EngineDeps, EngineHost, EnginePauses } from './ports.ts';

export interface PausingDeps extends Pick<EngineDeps, 'clock' | 'cluster' | 'hooks'> {
  store: { pauses: PauseStore; runs: Pick<RunStore, 'find'> };
  claims: Pick<Claims, 'active' | 'opening' | 'stale' | 'staleWorkflow' | 'refresh'>;
  notices: Pick<OwnerNotices, 'notify'>;
  host: Pick<EngineHost, 'isWorking' | 'requestTick'>;
}

/**
 * The store keeps a paused run from being claimed. Its owner begins no new step, and unloads it once the steps in flight
 * have ended. @spec docs/workflows.md "Pause and resume"
 */
export class Pausing implements EnginePauses {
  readonly #deps: PausingDeps;

  constructor(deps: PausingDeps) {
    this.#deps = deps;
  }

  async pause(run: RunRecord): Promise<RunRecord> {
    const { store, clock, claims } = this.#deps;
    const paused = await store.pauses.pauseRun(run.seq, clock.now());
    if (!paused) throw notPausable((await this.#find(run)) ?? run);
    claims.stale(run.id);
    return this.#tellOwner(run, paused.owner);
  }

  async resume(run: RunRecord): Promise<RunRecord> {
    const { store, clock } = this.#deps;
    const resumed = await store.pauses.resumeRun(run.seq, clock.now());
    if (!resumed) return (await this.#find(run)) ?? run;
    const now = await this.#tellOwner(run, resumed.owner);
    await this.#claimAgain();
    return now;
  }

  async pauseWorkflow(workflow: TenantWorkflow): Promise<void> {
    await this.#deps.store.pauses.pauseWorkflow(workflow);
    this.#deps.claims.staleWorkflow(workflow);
  }

  async resumeWorkflow(workflow: TenantWorkflow): Promise<void> {
    await this.#deps.store.pauses.resumeWorkflow(workflow);
    await this.#claimAgain();
  }

  /** Lets the process that executes the run drain or continue it. Returns the stored run. */
  async #tellOwner(run: RunRecord, owner: number | null): Promise<RunRecord> {
    const { claims, cluster, notices, hooks, host } = this.#deps;
    await claims.opening.get(run.id);
    // In a cluster, only notices change runs in memory. A late reply of this read could undo a newer pause.
    if (cluster) await notices.notify(owner);
    const now = (await this.#find(run)) ?? run;
    if (!cluster && host.isWorking) claims.active.get(run.id)?.setPaused(isPaused(now));
    hooks.changed(run.id);
    return now;
  }

  #find({ tenantId, id }: RunRecord): Promise<RunRecord | undefined> {
    return this.#deps.store.runs.find(tenantId, id);
  }

  async #claimAgain(): Promise<void> {
    await this.#deps.claims.refresh();
    this.#deps.host.requestTick();
  }
}

function notPausable({ id, status }: RunRecord): PlatformError {
  const why = isFinal(status) ? `has already ended: ${status}` : 'is being cancelled';
  return new PlatformError('CONFLICT', `Run ${id} ${why}. Only unfinished runs can be paused.`, {
    details: { runId: id, status },
  });
}
