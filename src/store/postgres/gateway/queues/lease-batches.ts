import type {
  LeaseChange,
  LeasedItem,
  LeaseOutcome,
  LeaseRequest,
  LeaseResult,
} from '../../../ports/index.ts';
import { EXPIRED, leaseIdOf } from '../../../queue-rules.ts';
import { BatchWriter } from '../../batch-writer.ts';
import type { PostgresDatabase } from '../../database.ts';

interface LeasedRow {
  item: number;
  item_id: string;
  delivery: string | null;
  key: string | null;
  attempts: number;
  received: number;
  until: number;
  header_text: string;
  content: Buffer;
}

interface Lease {
  position: number;
  token: string;
}

interface Settlement {
  leases: readonly Lease[];
  change: LeaseChange;
  maxAttempts: number;
}

/** Results by lease id. Lost leases have none. */
type Settled = ReadonlyMap<string, LeaseResult>;

const LIMITS = { maxRunning: 3, maxItems: 64, maxBytes: Infinity, sizeOf: () => 0 };

const LEASE = `select * from svc.lease_queue_items(
  :queueId, :max, :maxBytes, :leaseMs, :token, :maxAttempts, :concurrency, :error, :now)`;
const SETTLE = `select * from svc.settle_queue_leases(
  :queueId, :positions::bigint[], :tokens::text[], :kind, :ms, :error, :maxAttempts, :now)`;

/** Leases and acknowledgements of this process. Concurrent ones of a queue share a transaction. */
export class LeaseBatches {
  readonly #database: PostgresDatabase;
  readonly #now: () => number | null;
  readonly #leases = new Map<number, BatchWriter<LeaseRequest, LeasedItem[]>>();
  readonly #acks = new Map<number, BatchWriter<Settlement, Settled>>();

  constructor(database: PostgresDatabase, now: () => number | null) {
    this.#database = database;
    this.#now = now;
  }

  lease(queueId: number, request: LeaseRequest): Promise<LeasedItem[]> {
    const write = (requests: readonly LeaseRequest[]) => this.#leaseAll(queueId, requests);
    return writerOf(this.#leases, queueId, write).add(request);
  }

  settle(queueId: number, settlement: Settlement): Promise<Settled> {
    if (settlement.change.kind !== 'ack') return this.#settle(queueId, settlement);
    const write = async (acks: readonly Settlement[]) => {
      const leases = acks.flatMap((ack) => ack.leases);
      const settled = await this.#settle(queueId, { ...acks[0]!, leases });
      return acks.map(() => settled);
    };
    return writerOf(this.#acks, queueId, write).add(settlement);
  }

  /** Leases for all requests with the same limits together, and gives each its share in the order of the requests. */
  async #leaseAll(queueId: number, requests: readonly LeaseRequest[]): Promise<LeasedItem[][]> {
    const shares = new Map<LeaseRequest, LeasedItem[]>();
    const alike = Map.groupBy(requests, ({ leaseMs, maxAttempts, concurrency, maxBytes }) =>
      [leaseMs, maxAttempts, concurrency, maxBytes].join(),
    );
    for (const group of alike.values()) {
      const max = group.reduce((sum, request) => sum + request.max, 0);
      // The limit of bytes holds for all together, so that no share exceeds it and no item is left over.
      const items = await this.#lease(queueId, { ...group[0]!, max });
      for (const request of group) shares.set(request, items.splice(0, request.max));
    }
    return requests.map((request) => shares.get(request)!);
  }

  async #lease(queueId: number, request: LeaseRequest): Promise<LeasedItem[]> {
    const { max, maxBytes, leaseMs, token, maxAttempts, concurrency } = request;
    const values = { queueId, max, maxBytes, leaseMs, token, maxAttempts, concurrency, error: EXPIRED };
    const rows = await this.#write<LeasedRow>(LEASE, values, 'lease queue items');
    return rows
      .sort((a, b) => a.item - b.item)
      .map((row) => ({
        leaseId: leaseIdOf(row.item, token),
        ...{ id: row.item_id, deliveryId: row.delivery, orderKey: row.key, attempt: row.attempts },
        ...{ receivedAt: row.received, leasedUntil: row.until, headers: row.header_text, body: row.content },
      }));
  }

  async #settle(queueId: number, { leases, change, maxAttempts }: Settlement): Promise<Settled> {
    const values = {
      ...{ queueId, kind: change.kind, ms: msOf(change), maxAttempts },
      error: change.kind === 'nack' ? change.error : null,
      positions: leases.map(({ position }) => position),
      tokens: leases.map(({ token }) => token),
    };
    const rows = await this.#write<{
      item: number;
      lease_token: string;
      outcome: LeaseOutcome;
      until: number | null;
    }>(SETTLE, values, 'settle queue leases');
    return new Map(
      rows.map((row) => [leaseIdOf(row.item, row.lease_token), { outcome: row.outcome, until: row.until }]),
    );
  }

  #write<Row extends object>(text: string, values: object, prepareAs: string): Promise<Row[]> {
    return this.#database.write((sql) => sql<Row>(text, { ...values, now: this.#now() }, prepareAs));
  }
}

function writerOf<Item, Result>(
  writers: Map<number, BatchWriter<Item, Result>>,
  queueId: number,
  write: (items: readonly Item[]) => Promise<readonly Result[]>,
): BatchWriter<Item, Result> {
  const writer = writers.get(queueId) ?? new BatchWriter({ ...LIMITS, write });
  writers.set(queueId, writer);
  return writer;
}

function msOf(change: LeaseChange): number | null {
  if (change.kind === 'extend') return change.leaseMs;
  return change.kind === 'nack' ? change.delayMs : null;
}
