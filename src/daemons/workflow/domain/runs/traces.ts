import type { TracedRun } from '../../../../contracts/index.ts';
import type { RunRecord, RunStore } from '../../../../store/ports/index.ts';
import { viewRun } from '../run/views.ts';
import type { Runs } from './runs.ts';

/** Maximum number of runs and jobs in the list of a trace. */
const MAX_RUNS = 100;
/** Maximum number of runs whose steps are listed, because each of them can have a thousand steps. */
const MAX_RUNS_WITH_STEPS = 20;

export interface TracesDeps {
  store: Pick<RunStore, 'ofTrace'>;
  runs: Pick<Runs, 'steps'>;
}

/** Lists the runs and jobs that requests of a trace started. @spec docs/observability.md "Traces" */
export class Traces {
  readonly #deps: TracesDeps;

  constructor(deps: TracesDeps) {
    this.#deps = deps;
  }

  async runs(tenantId: string, traceId: string): Promise<{ runs: TracedRun[]; truncated: boolean }> {
    const found = await this.#deps.store.ofTrace(tenantId, traceId, MAX_RUNS + 1);
    const runs: TracedRun[] = [];
    for (const run of found.slice(0, MAX_RUNS))
      runs.push(await this.#viewOf(run, runs.length < MAX_RUNS_WITH_STEPS));
    return { runs, truncated: found.length > MAX_RUNS_WITH_STEPS };
  }

  async #viewOf(run: RunRecord, withSteps: boolean): Promise<TracedRun> {
    const { kind, requestId, parentSpanId, parentStep } = run;
    const view = viewRun(run);
    const steps = withSteps ? await this.#deps.runs.steps(run.tenantId, run.id) : [];
    return { kind, run: view, requestId, parentSpanId, parentStep, steps, error: view.error };
  }
}
