import type { RunError } from '../../../../../contracts/index.ts';
import { type BulkCursor, formatBulkCursor, parseBulkCursor } from '../../../../../kit/data/bulk-cursor.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type {
  DeliveryCursor,
  DeliveryFilter,
  DeliveryPage,
  DeliveryRecord,
  WebhookInbox,
} from '../../../../../store/ports/index.ts';
import { viewOf } from './delivery-view.ts';

export interface BulkReplay extends DeliveryFilter {
  /** End of the receive times, exclusive. */
  until?: number | undefined;
  /** Instead of the filter. */
  webhookIds?: readonly string[] | undefined;
  cursor?: string | undefined;
  dryRun: boolean;
  limit: number;
}

type ReplayFilter = DeliveryFilter & Pick<BulkReplay, 'until'>;

export interface BulkReplayed {
  items: Array<{ webhookId: string; replayOf: string }>;
  refused: Array<{ webhookId: string; error: RunError }>;
  skipped: number;
}

/** A delivery to replay, and the cursor position behind it. */
export interface SelectedDelivery {
  webhookId: string;
  /** Whether the list already showed that the delivery was replayed. */
  isReplayed: boolean;
  at: readonly number[];
}

export interface ReplaySelectionDeps {
  inbox: Pick<WebhookInbox, 'list' | 'find' | 'newest'>;
  clock: Clock;
  random: Random;
}

const PAGE = 200;
const MAX_COUNTED = 10_000;
/** Deliveries that a dry run examines at most, those that were replayed before included. */
const MAX_EXAMINED = 50_000;
const SAMPLE = 10;
/** A cursor before the first delivery. */
const OLDEST: DeliveryCursor = { receivedAt: 0, position: 0 };

/** The deliveries of one bulk replay. Deliveries that are created after its first call are not part of it. */
export class ReplaySelection {
  readonly #deps: ReplaySelectionDeps;
  readonly #namespaceId: string;
  readonly #filter: ReplayFilter;
  readonly #webhookIds: readonly string[] | undefined;
  readonly #cursor: BulkCursor;

  private constructor(
    deps: ReplaySelectionDeps,
    namespaceId: string,
    { filter, webhookIds }: { filter: ReplayFilter; webhookIds: readonly string[] | undefined },
    cursor: BulkCursor,
  ) {
    this.#deps = deps;
    this.#namespaceId = namespaceId;
    this.#filter = filter;
    this.#webhookIds = webhookIds;
    this.#cursor = cursor;
  }

  /** Continues the selection of a cursor, or pins a new one. Throws VALIDATION_ERROR for a bad cursor. */
  static async open(
    deps: ReplaySelectionDeps,
    namespaceId: string,
    { cursor: text, webhookIds, dryRun: _, limit: __, ...filter }: BulkReplay,
  ): Promise<ReplaySelection> {
    const chosen = { filter, webhookIds };
    const now = deps.clock.now();
    const cursor =
      text === undefined
        ? { id: '', pinnedAt: now, newest: await deps.inbox.newest(), at: [] }
        : parseBulkCursor(text, identityOf(namespaceId, chosen), now);
    return new ReplaySelection(deps, namespaceId, chosen, cursor);
  }

  /** Returns the cursor of a call that continues behind `at`. Without `at`, it begins where this call began. */
  cursorAt(at = this.#cursor.at): string {
    const chosen = { filter: this.#filter, webhookIds: this.#webhookIds };
    return formatBulkCursor({ ...this.#cursor, at }, identityOf(this.#namespaceId, chosen));
  }

  /** Counts the deliveries that match and were not replayed yet, up to a limit. */
  async matching() {
    const sample: DeliveryRecord[] = [];
    let count = 0;
    let examined = 0;
    for await (const record of this.#records()) {
      if (count === MAX_COUNTED || ++examined > MAX_EXAMINED)
        return { count, isComplete: false, sample: sample.map(viewOf) };
      if (record.replayedBy !== null) continue;
      if (count++ < SAMPLE) sample.push(record);
    }
    return { count, isComplete: true, sample: sample.map(viewOf) };
  }

  /** Returns the deliveries from the cursor on: oldest first, or newest first for a text search. */
  async *deliveries(): AsyncGenerator<SelectedDelivery> {
    if (this.#webhookIds) {
      const from = this.#cursor.at[0] ?? 0;
      for (const [index, webhookId] of this.#webhookIds.slice(from).entries())
        yield { webhookId, isReplayed: false, at: [from + index + 1] };
      return;
    }
    for await (const { webhookId, replayedBy, receivedAt, position } of this.#records())
      yield { webhookId, isReplayed: replayedBy !== null, at: [receivedAt, position] };
  }

  async *#records(): AsyncGenerator<DeliveryRecord> {
    if (this.#webhookIds) return yield* this.#chosen(this.#webhookIds);
    const { inbox } = this.#deps;
    const [receivedAt, position] = this.#cursor.at;
    const isFirst = receivedAt === undefined || position === undefined;
    const { until = Infinity, ...filter } = this.#filter;
    const end = until === Infinity ? undefined : { receivedAt: until, position: 0 };
    // Only the index of newest deliveries knows texts. The other order would read the body of each delivery.
    const isNewestFirst = filter.search !== undefined;
    const start = isNewestFirst ? end : OLDEST;
    let place: DeliveryCursor | null | undefined = isFirst ? start : { receivedAt, position };
    do {
      const edge = isNewestFirst ? { before: place } : { after: place };
      const page: DeliveryPage = await inbox.list(this.#namespaceId, {
        ...filter,
        ...edge,
        limit: PAGE,
      });
      for (const record of page.items) {
        if (record.receivedAt >= until) return;
        if (record.position <= this.#cursor.newest) yield record;
      }
      place = page.next;
    } while (place);
  }

  async *#chosen(webhookIds: readonly string[]): AsyncGenerator<DeliveryRecord> {
    for (const webhookId of webhookIds) {
      const record = await this.#deps.inbox.find(webhookId);
      if (record?.namespaceId === this.#namespaceId) yield record;
    }
  }
}

function identityOf(namespaceId: string, chosen: object): object {
  return { action: 'replay', namespaceId, ...chosen };
}
