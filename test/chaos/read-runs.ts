import {
  getRun,
  listRunEvents,
  type RunEvent,
  type RunJob,
  type RunStep,
  type WorkflowRun,
} from '../../src/contracts/index.ts';
import type { Ledger } from '../daemons/workflow/support/ledger.ts';
import type { RetryingClient } from '../daemons/workflow/support/retrying-client.ts';

/** All that is known of a run in the end. */
export interface EndedRun {
  run: WorkflowRun;
  jobs: RunJob[];
  steps: RunStep[];
  events: RunEvent[];
  /** The keys that its effects came under, by name, in the order of their first time. */
  effects: ReadonlyMap<string, ReadonlySet<string | null>>;
}

const AT_ONCE = 8;

/** Newest first. */
export async function readRuns(client: RetryingClient, ledger: Ledger): Promise<EndedRun[]> {
  const effects = effectsOf(ledger);
  const all = await client.runs();
  const read: EndedRun[] = [];
  for (let from = 0; from < all.length; from += AT_ONCE)
    read.push(...(await Promise.all(all.slice(from, from + AT_ONCE).map(readOne))));
  return read;

  async function readOne({ id }: WorkflowRun): Promise<EndedRun> {
    const params = { runId: id };
    const [{ jobs, ...run }, steps, events] = await Promise.all([
      client.call(getRun, { params }),
      client.steps(id),
      client.call(listRunEvents, { params, query: { limit: 1000 } }),
    ]);
    return { run, jobs, steps, events: events.items, effects: effects.get(id) ?? new Map() };
  }
}

function effectsOf({ entries }: Ledger): Map<string, Map<string, Set<string | null>>> {
  const found = new Map<string, Map<string, Set<string | null>>>();
  for (const { name, key } of entries) {
    const [what, run, effect] = name.split('/');
    if (what !== 'effects') continue;
    const ofRun = found.get(run!) ?? new Map<string, Set<string | null>>();
    found.set(run!, ofRun.set(effect!, (ofRun.get(effect!) ?? new Set()).add(key)));
  }
  return found;
}
