import { type DeliveryStatus, LIMITS } from '../../../../contracts/index.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  ClaimResult,
  DeliveryEnd,
  DeliveryHourCounts,
  DeliveryPage,
  DeliveryRecord,
  HourRange,
  MarkerClaim,
  MarkerState,
  NewDelivery,
  UnfinishedDelivery,
  WebhookInbox,
} from '../../../ports/index.ts';
import { type BufferedDelivery, WriteBuffer } from '../../../write-buffer.ts';
import type { BatchWriter } from '../../batch-writer.ts';
import type { PostgresDatabase } from '../../database.ts';
import { hasNoOwner } from '../../members.ts';
import { ReplicationBarrier } from '../../replication-barrier.ts';
import { storable } from '../../storable.ts';
import { deliveryEndings, type Ending } from './endings.ts';
import { handOver } from './hand-over.ts';
import { deliveryHours } from './hour-counts.ts';
import { deliveryInserts, type Insert } from './inserts.ts';
import { type ListOptions, listDeliveries } from './lists.ts';
import { type MarkerTime, markerTime } from './marker-time.ts';
import { digestOf, PostgresMarkers } from './markers.ts';
import { PostgresDeliveryRetention } from './retention.ts';
import { type RowState, SELECT_HEAD, SELECT_WHOLE } from './rows.ts';
import { IS_OPEN, POSITION_HORIZON } from './schema.ts';

/** Maximum body bytes that one read of unfinished deliveries returns, apart from the first record. */
const MAX_READ_BYTES = 16 * 1024 * 1024;

/** Deliveries and their markers. A write is committed when its promise resolves. @spec Webhook delivery */
export class PostgresWebhookInbox implements WebhookInbox {
  readonly #database: PostgresDatabase;
  readonly #inserts: BatchWriter<Insert, boolean>;
  readonly #endings: BatchWriter<Ending, void>;
  readonly #markers: PostgresMarkers;
  readonly #barrier: ReplicationBarrier;
  readonly #retention: PostgresDeliveryRetention;
  readonly #time: MarkerTime;
  readonly #notes: WriteBuffer;
  /** `leaseClock` replaces the clock of the database in tests. */
  constructor(
    database: PostgresDatabase,
    { clock, logger, leaseClock }: { clock: Clock; logger: Logger; leaseClock?: Clock | undefined },
  ) {
    const time = markerTime(clock, leaseClock);
    this.#database = database;
    this.#time = time;
    this.#barrier = new ReplicationBarrier(database);
    this.#inserts = deliveryInserts(database, time);
    this.#endings = deliveryEndings(database, time);
    this.#markers = new PostgresMarkers(database, this.#inserts, { time, barrier: this.#barrier });
    this.#retention = new PostgresDeliveryRetention(database);
    this.#notes = new WriteBuffer({ clock, logger, write: (noted) => this.#writeNotes(noted) });
  }

  /** Bytes that wait for the database: always 0, because committed deliveries are visible at once. */
  get waitingBytes(): number {
    return 0;
  }

  get applyFailure(): unknown {
    return undefined;
  }

  seen(markerKey: string, _now: number): Promise<MarkerState | undefined> {
    return this.#markers.find(digestOf(markerKey));
  }

  begin(delivery: NewDelivery, marker: MarkerClaim | undefined, owner?: number): Promise<ClaimResult> {
    return this.#insert(delivery, { ...newState('running', ''), owner }, marker);
  }

  accept(
    delivery: NewDelivery,
    marker: MarkerClaim | undefined,
    steps: string,
  ): Promise<ClaimResult | 'spilled'> {
    return this.#insert(delivery, newState('accepted', steps), marker);
  }

  finish(
    webhookId: string,
    end: DeliveryEnd,
    marker?: { key: string; expiresAt: number | null },
  ): Promise<void> {
    const ending = marker && { digest: digestOf(marker.key), expiresAt: marker.expiresAt };
    return this.#endings.add({ webhookId, end, marker: ending });
  }

  handOver(webhookId: string, steps: string, marker?: MarkerClaim): Promise<void> {
    const done = marker && { digest: digestOf(marker.key), expiresAt: marker.expiresAt };
    return handOver(this.#database, this.#time, { webhookId, steps, marker: done });
  }

  async resume(): Promise<number> {
    const { rowCount } = await this.#database.sql(
      `update svc.delivery set status = 'accepted', owner = null where position in (
         select position from svc.delivery d
         where ${IS_OPEN} and status = 'running' and mode = 'async' and ${hasNoOwner('d.owner')}
         order by position for update)`,
    );
    return rowCount ?? 0;
  }

  async replay(delivery: NewDelivery, steps: string, original: DeliveryRecord): Promise<void> {
    const row = { delivery, state: newState('accepted', steps), marker: original.marker };
    await this.#inserts.add({ row, claim: null, replayed: original.webhookId });
  }

  settleMarker(marker: Uint8Array, expiresAt: number): Promise<void> {
    return this.#markers.settle(marker, expiresAt);
  }

  async isSettled(marker: Uint8Array): Promise<boolean> {
    return (await this.#markers.find(marker)) === 'done';
  }

  note(delivery: NewDelivery, end: DeliveryEnd): void {
    this.#notes.add({ delivery, end });
  }

  async unfinished(limit: number, afterPosition = 0): Promise<UnfinishedDelivery[]> {
    const { rows } = await this.#database.sql<UnfinishedDelivery & object>(
      `with open as (
         select position, body_bytes from svc.delivery
         where ${IS_OPEN} and status <> 'running' and position > $1
           and (order_key is null or position < ${POSITION_HORIZON})
         order by position limit $2
       ), summed as (
         select position, sum(body_bytes) over (order by position) - body_bytes as before from open
       )
       select w.*, w.position >= ${POSITION_HORIZON} as "isProvisional" from (
         ${SELECT_WHOLE} where d.position in (select position from summed where before <= $3)
       ) w order by w.position`,
      [afterPosition, limit, MAX_READ_BYTES],
    );
    // The caller runs the handlers only after the standby has these deliveries. If a failover lost a delivery, the
    // sender would repeat the delivery and the handler would run twice.
    if (rows.length > 0) await this.#barrier.pass();
    return rows;
  }

  async interrupt(): Promise<number> {
    const { rowCount } = await this.#database.sql(
      `with interrupted as (
         update svc.delivery set status = 'interrupted', owner = null where position in (
           select position from svc.delivery d where ${IS_OPEN} and status = 'running' and ${hasNoOwner('d.owner')}
           order by position for update)
         returning webhook_id, marker
       ), released as (
         delete from svc.delivery_marker m using interrupted i
         where m.digest = i.marker and m.webhook_id = i.webhook_id and m.state = 'pending'
       )
       select from interrupted`,
    );
    return rowCount ?? 0;
  }

  async find(webhookId: string): Promise<DeliveryRecord | undefined> {
    await this.#notes.flush();
    const { rows } = await this.#database.sql<DeliveryRecord>(`${SELECT_WHOLE} where d.webhook_id = $1`, [
      webhookId,
    ]);
    return rows[0];
  }

  async list(namespaceId: string, options: ListOptions): Promise<DeliveryPage> {
    await this.#notes.flush();
    return listDeliveries(this.#database.lists, namespaceId, options);
  }

  async ofTrace(namespaceId: string, traceId: string, limit: number): Promise<DeliveryRecord[]> {
    await this.#notes.flush();
    const { rows } = await this.#database.lists.sql<DeliveryRecord>(
      `${SELECT_HEAD} where d.namespace_id = $1 and d.trace_id = $2 order by d.position desc limit $3`,
      [namespaceId, storable(traceId), limit],
    );
    return rows;
  }

  async after(namespaceId: string, position: number, limit: number): Promise<DeliveryRecord[]> {
    const { rows } = await this.#database.sql<DeliveryRecord>(
      `${SELECT_WHOLE} where d.namespace_id = $1 and d.position > $2 and d.position < ${POSITION_HORIZON}
       order by d.position limit $3`,
      [namespaceId, position, limit],
    );
    return rows;
  }

  async ended(namespaceId: string, positions: readonly number[]): Promise<DeliveryRecord[]> {
    const { rows } = await this.#database.sql<DeliveryRecord>(
      `${SELECT_WHOLE} where d.namespace_id = $1 and d.position = any($2) and not (${IS_OPEN}) order by d.position`,
      [namespaceId, positions],
    );
    return rows;
  }

  async latest(): Promise<number> {
    const { rows } = await this.#database.sql<{ position: number }>(
      `select coalesce(max(position), 0) as position from svc.delivery where position < ${POSITION_HORIZON}`,
    );
    return rows[0]!.position;
  }

  async newest(): Promise<number> {
    const { rows } = await this.#database.sql<{ position: number }>(
      'select coalesce(max(position), 0) as position from svc.delivery',
    );
    return rows[0]!.position;
  }

  async countByHour(namespaceId: string, range: HourRange): Promise<DeliveryHourCounts[]> {
    await this.#notes.flush();
    return this.#database.lists.read((sql) => deliveryHours(sql, namespaceId, range));
  }

  async prune({ receivedBefore, now, limit }: Parameters<WebhookInbox['prune']>[0]): Promise<number> {
    return (await this.#retention.prune(receivedBefore, limit, now)) + (await this.#markers.prune(limit));
  }

  shrink(options: { maxBytes: number; limit: number }): Promise<number> {
    return this.#retention.shrink(options);
  }

  flush(): Promise<void> {
    return this.#notes.flush();
  }

  close(): Promise<void> {
    return this.flush();
  }

  /**
   * Stores a delivery from the local spill store, unless PostgreSQL already has the delivery. If another delivery holds
   * the marker, stores the delivery as a duplicate, which never runs.
   */
  async adopt({ steps, marker, ...delivery }: DeliveryRecord): Promise<void> {
    const expiresAt = delivery.receivedAt + LIMITS.idempotencyWindowMs;
    const claim = marker && { state: 'done' as const, expiresAt };
    const row = { delivery, state: newState('accepted', steps), marker };
    if (await this.#inserts.add({ row, claim, replayed: null })) return;
    // The insert keeps an existing row with the same id. Such a row exists if a commit succeeded but its confirmation
    // was lost.
    const state = { ...newState('duplicate', steps), httpStatus: 202 };
    await this.#inserts.add({ row: { delivery, state, marker: null }, claim: null, replayed: null });
  }

  async #insert(
    delivery: NewDelivery,
    state: RowState,
    claim: MarkerClaim | undefined,
  ): Promise<ClaimResult> {
    if (claim) {
      const kind = state.status === 'running' ? 'pending' : 'done';
      return this.#markers.claim({ delivery, state, marker: digestOf(claim.key) }, claim, kind);
    }
    const row = { delivery, state, marker: null };
    await this.#inserts.add({ row, claim: null, replayed: delivery.replayOf });
    return 'begun';
  }

  /** Writes the buffered records of requests that no handler processed. */
  async #writeNotes(noted: readonly BufferedDelivery[]): Promise<void> {
    await Promise.all(
      noted.map(({ delivery, end }) =>
        this.#inserts.add({ row: { delivery, state: end, marker: null }, claim: null, replayed: null }),
      ),
    );
  }
}

const newState = (status: DeliveryStatus, steps: string): RowState => ({
  status,
  steps,
  httpStatus: null,
  outcome: null,
  durationMs: null,
});
