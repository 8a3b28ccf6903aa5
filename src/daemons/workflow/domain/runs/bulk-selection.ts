import type { BulkRun } from '../../../../contracts/index.ts';
import { type BulkCursor, formatBulkCursor, parseBulkCursor } from '../../../../kit/data/bulk-cursor.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { RunHead, RunStore } from '../../../../store/ports/index.ts';
import { type RunConditions, storeFilter } from './run-requests.ts';

export interface BulkRequest {
  filter?: RunConditions | undefined;
  runIds?: readonly string[] | undefined;
  cursor?: string | undefined;
  limit: number;
}

/** A run to act on. `head` is undefined if an id of the request is unknown. */
export interface Selected {
  id: string;
  head: RunHead | undefined;
  /** Cursor position before this run. A call that stops here continues with this run. */
  before: number;
}

export interface Batch {
  selected: Selected[];
  /** Position after the batch. Null when nothing is left. */
  next: number | null;
}

export interface BulkSelectionDeps {
  store: Pick<RunStore, 'find' | 'heads'>;
  clock: Clock;
  random: Random;
}

/** Whether an action applies to a run that a filter found, for a selection that was pinned at the given time. */
export type Applies = (run: RunHead, pinnedAt: number) => boolean;

const MAX_COUNTED = 10_000;
const PAGE = 1000;
/** Maximum number of list pages that one call reads. Each page reads a bounded number of rows. */
const MAX_PAGES = 20;
const SAMPLE = 10;

/** The runs of one bulk action, pinned by a cursor. Runs that are created later are not part of it. */
export class BulkSelection {
  readonly #deps: BulkSelectionDeps;
  readonly #tenantId: string;
  readonly #request: BulkRequest;
  readonly #applies: Applies;
  readonly #identity: object;
  readonly #cursor: BulkCursor;

  private constructor(
    deps: BulkSelectionDeps,
    tenantId: string,
    request: BulkRequest,
    { applies, identity, cursor }: { applies: Applies; identity: object; cursor: BulkCursor },
  ) {
    this.#deps = deps;
    this.#tenantId = tenantId;
    this.#request = request;
    this.#applies = applies;
    this.#identity = identity;
    this.#cursor = cursor;
  }

  /** Continues the selection of the request's cursor, or pins a new one. Throws VALIDATION_ERROR for a bad cursor. */
  static async open(
    deps: BulkSelectionDeps,
    tenantId: string,
    request: BulkRequest,
    { action, applies }: { action: string; applies: Applies },
  ): Promise<BulkSelection> {
    const { filter, runIds } = request;
    const identity = { action, tenantId, filter, runIds };
    const now = deps.clock.now();
    const cursor =
      request.cursor === undefined
        ? { id: deps.random.uuid(), pinnedAt: now, newest: await newestRun(deps, tenantId), at: [] }
        : parseBulkCursor(request.cursor, identity, now);
    return new BulkSelection(deps, tenantId, request, { applies, identity, cursor });
  }

  /** Id of the bulk action, which is the same in all its calls. */
  get id(): string {
    return this.#cursor.id;
  }

  /** Returns the cursor for the next call. */
  cursorAt(position: number | null): string | null {
    return position === null ? null : formatBulkCursor({ ...this.#cursor, at: [position] }, this.#identity);
  }

  /** Counts the runs that match, up to a limit. */
  async matching(): Promise<{ count: number; isComplete: boolean; sample: BulkRun[] }> {
    const sample: RunHead[] = [];
    let count = 0;
    let next: number | null = this.#start;
    for (let pages = 0; next !== null && count < MAX_COUNTED && pages < MAX_PAGES; pages++) {
      const batch: Batch = await this.#page(next, PAGE);
      const found = batch.selected.flatMap(({ head }) => head ?? []);
      sample.push(...found.slice(0, SAMPLE - sample.length));
      count += found.length;
      next = batch.next;
    }
    return { count, isComplete: next === null, sample: sample.map(shown) };
  }

  /** Returns the position of the first call. */
  get first(): number {
    return this.#start;
  }

  /** Returns the next runs. The batch can be short, or even empty, although more runs match. */
  async batch(): Promise<Batch> {
    const selected: Selected[] = [];
    let next: number | null = this.#start;
    for (
      let pages = 0;
      next !== null && selected.length < this.#request.limit && pages < MAX_PAGES;
      pages++
    ) {
      const page: Batch = await this.#page(next, this.#request.limit - selected.length);
      selected.push(...page.selected);
      next = page.next;
    }
    return { selected, next };
  }

  get #start(): number {
    const [position] = this.#cursor.at;
    // Positions in a list of ids are indexes. Positions in a filtered list are exclusive upper bounds.
    return position ?? (this.#request.runIds ? 0 : this.#cursor.newest + 1);
  }

  async #page(position: number, limit: number): Promise<Batch> {
    const { filter, runIds } = this.#request;
    if (runIds) return this.#listed(runIds, position, limit);
    const { runs, next } = await this.#deps.store.heads(this.#tenantId, {
      ...storeFilter(filter ?? {}),
      before: position,
      limit,
    });
    const selected = runs
      .filter((run) => this.#applies(run, this.#cursor.pinnedAt))
      .map((head) => ({ id: head.id, head, before: head.seq + 1 }));
    return { selected, next };
  }

  async #listed(runIds: readonly string[], position: number, limit: number): Promise<Batch> {
    const selected: Selected[] = [];
    for (const [index, id] of runIds.slice(position, position + limit).entries()) {
      const head = await this.#deps.store.find(this.#tenantId, id);
      selected.push({ id, head, before: position + index });
    }
    const next = position + selected.length;
    return { selected, next: next < runIds.length ? next : null };
  }
}

async function newestRun({ store }: BulkSelectionDeps, tenantId: string): Promise<number> {
  const { runs } = await store.heads(tenantId, { limit: 1 });
  return runs[0]?.seq ?? 0;
}

function shown({ id, workflowId, status, createdAt }: RunHead): BulkRun {
  return { id: id as BulkRun['id'], workflowId, status, createdAt };
}
