import type { JsonValue, RunRecord, RunStore } from '../../../../store/ports/index.ts';
import { type Idempotency, isRepeat, keyTaken, requireCallerKey } from './idempotency.ts';
import {
  type Admitted,
  RunAdmission,
  type RunAdmissionDeps,
  type Starter,
  type StartRequest,
} from './run-admission.ts';

export interface RunScheduler {
  /** Queues a new run and cancels the runs that the new run supersedes. Does nothing if the run is not new. */
  schedule(admitted: Admitted): Promise<void>;
}

export interface RunStarterDeps extends RunAdmissionDeps {
  store: Pick<RunStore, 'start' | 'keyed'>;
  engine: RunScheduler;
}

/** Starts runs for API callers, schedules and webhooks. */
export class RunStarter {
  readonly #deps: RunStarterDeps;
  readonly #admission: RunAdmission;

  constructor(deps: RunStarterDeps) {
    this.#deps = deps;
    this.#admission = new RunAdmission(deps);
  }

  /** Starts a run. The run is durable once the promise resolves. Throws the errors of `RunAdmission.admit`. */
  async start(request: StartRequest, starter: Starter): Promise<RunRecord> {
    const admitted = await this.#admission.admit(request, starter);
    await this.#deps.engine.schedule(admitted);
    return admitted.run;
  }

  /** Returns the input that a start would store. Throws VALIDATION_ERROR if the workflow does not accept it. */
  async checkInput(request: Pick<StartRequest, 'workflow' | 'input'>, starter: Starter): Promise<JsonValue> {
    return (await this.#admission.checkInput(request, starter)).input;
  }

  /**
   * Starts a run once per idempotency key of a caller. A repeated request returns the first run, even if the workflow
   * has since been removed.
   */
  async startOnce(
    idempotency: Idempotency | undefined,
    request: () => StartRequest,
    starter: Starter,
  ): Promise<RunRecord> {
    const { store, clock } = this.#deps;
    if (idempotency) requireCallerKey(idempotency);
    try {
      return await this.start({ ...request(), idempotency }, starter);
    } catch (error) {
      const known = idempotency && (await store.keyed(starter.tenantId, idempotency.key, clock.now()));
      const isSame = known && isRepeat(known, idempotency!);
      if (known?.run && isSame) return known.run;
      throw isSame === false ? keyTaken(idempotency!) : error;
    }
  }
}
