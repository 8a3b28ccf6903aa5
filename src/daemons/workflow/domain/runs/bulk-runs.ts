import { PLATFORM_CODES, type RunError, type RunStatus } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { RunHead } from '../../../../store/ports/index.ts';
import type { Starter } from '../starts/run-admission.ts';
import { isFinal } from '../states.ts';
import {
  type Batch,
  type BulkRequest,
  BulkSelection,
  type BulkSelectionDeps,
  type Selected,
} from './bulk-selection.ts';
import type { Reruns } from './reruns.ts';
import type { Runs } from './runs.ts';

export interface BulkRunsDeps extends BulkSelectionDeps {
  runs: Pick<Runs, 'cancel' | 'get'>;
  reruns: Pick<Reruns, 'rerun'>;
}

interface Outcome<Item> {
  items: Item[];
  refused: Array<{ runId: string; error: RunError }>;
  /** The limit that stopped the call, and the first run that was not handled. */
  paused: { error: RunError; at: Selected } | null;
}

/** Runs of one call that are handled at the same time. Their writes share transactions. */
const CONCURRENT = 8;

const CANCEL = {
  action: 'cancel',
  applies: ({ status }: RunHead) => !isFinal(status) && status !== 'cancelling',
};
const RERUN = {
  action: 'rerun',
  // A child run belongs to its parent. A rerun of both would do the work of the child twice.
  applies: ({ finishedAt, parentId }: RunHead, pinnedAt: number) =>
    finishedAt !== null && finishedAt <= pinnedAt && parentId === null,
};

/**
 * Cancels or reruns many runs, one batch per call. A repeated call finds what it did before, so that clients can repeat
 * calls without an answer. @spec docs/decisions/0232
 */
export class BulkRuns {
  readonly #deps: BulkRunsDeps;

  constructor(deps: BulkRunsDeps) {
    this.#deps = deps;
  }

  async cancel(tenantId: string, { dryRun, ...request }: BulkRequest & { dryRun: boolean }) {
    const selection = await BulkSelection.open(this.#deps, tenantId, request, CANCEL);
    if (dryRun) return { items: [], ...(await seen(selection)) };
    const batch = await selection.batch();
    const { items, refused } = await applyAll(batch, (runId) => this.#cancelOne(tenantId, runId));
    return { items, refused, matching: null, nextCursor: selection.cursorAt(batch.next) };
  }

  async rerun(tenantId: string, { dryRun, ...request }: BulkRequest & { dryRun: boolean }, who: Starter) {
    const { reruns } = this.#deps;
    const selection = await BulkSelection.open(this.#deps, tenantId, request, RERUN);
    if (dryRun) return { items: [], paused: null, ...(await seen(selection)) };
    const batch = await selection.batch();
    const { items, refused, paused } = await applyAll(batch, async (id) => {
      const key = `bulk-rerun/${selection.id}/${id}`;
      return { runId: (await reruns.rerun(tenantId, id, { key }, who)).id as string, rerunOf: id };
    });
    const nextCursor = selection.cursorAt(paused ? paused.at.before : batch.next);
    return { items, refused, matching: null, paused: paused?.error ?? null, nextCursor };
  }

  async #cancelOne(tenantId: string, runId: string): Promise<{ runId: string; status: RunStatus }> {
    const { runs } = this.#deps;
    try {
      const { cancelled, status } = await runs.cancel(tenantId, runId);
      if (cancelled) return { runId, status };
      throw new PlatformError('CONFLICT', `Run ${runId} had already ended: ${status}.`);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'WORKFLOW_ALREADY_CANCELLED') throw error;
      // An earlier call, or the cancel of its parent, has cancelled the run.
      return { runId, status: (await runs.get(tenantId, runId)).status };
    }
  }
}

async function seen(selection: BulkSelection) {
  const matching = await selection.matching();
  const nextCursor = matching.count === 0 && matching.isComplete ? null : selection.cursorAt(selection.first);
  return { matching, refused: [], nextCursor };
}

/** Acts on the runs of a batch in their order. Stops at the first run that a limit of the tenant refuses. */
async function applyAll<Item>(
  { selected }: Batch,
  apply: (id: string) => Promise<Item>,
): Promise<Outcome<Item>> {
  const outcome: Outcome<Item> = { items: [], refused: [], paused: null };
  for (let start = 0; start < selected.length; start += CONCURRENT) {
    const group = selected.slice(start, start + CONCURRENT);
    const results = await Promise.all(group.map(({ id }) => settled(apply(id))));
    for (const [index, result] of results.entries()) {
      const at = group[index]!;
      if ('item' in result) outcome.items.push(result.item);
      else if (result.isPause) return { ...outcome, paused: { error: result.error, at } };
      else outcome.refused.push({ runId: at.id, error: result.error });
    }
  }
  return outcome;
}

type Settled<Item> = { item: Item } | { error: RunError; isPause: boolean };

/** Rethrows errors of the platform, because the client has to repeat the call then. */
async function settled<Item>(work: Promise<Item>): Promise<Settled<Item>> {
  try {
    return { item: await work };
  } catch (error) {
    if (!(error instanceof PlatformError) || PLATFORM_CODES[error.code] >= 500) throw error;
    const { code, message, details } = error;
    // Only limits of the tenant name it. A concurrency key that is in use refuses a single run.
    const isPause = PLATFORM_CODES[code] === 429 && details.tenantId !== undefined;
    return { error: { code, message, details }, isPause };
  }
}
