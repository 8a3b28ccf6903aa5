import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../kit/time/clock.ts';
import type { DroppedLines, KeptEvent, KeptLog, TelemetryBatch } from '../../ports/telemetry.ts';
import { UNKNOWN_TENANT } from '../../telemetry/dropped-counts.ts';
import { actorKey, eventRowOf } from '../../telemetry/event-rows.ts';
import { logRowOf } from '../../telemetry/log-rows.ts';
import type { PostgresDatabase } from '../database.ts';
import { notePermissionUses } from './permission-uses.ts';
import { indexedText, jsonText, searchVector } from './texts.ts';

const APPEND = 'select svc.append_node_telemetry($1, $2, $3, $4, $5, $6, $7, $8)';

/** Stores batches in their order, each with one statement, so that a lost node leaves no transaction open. */
export class TelemetryAppender {
  readonly #database: PostgresDatabase;
  readonly #clock: Clock | undefined;
  readonly #node: string;
  readonly #id = randomUUID();
  /**
   * Numbers of batches. A batch keeps its number when it is appended again, so that the batch is stored once even if
   * the first commit was not confirmed.
   */
  readonly #numbers = new WeakMap<TelemetryBatch, number>();
  #lastNumber = 0;
  #appending: Promise<unknown> = Promise.resolve();

  constructor(database: PostgresDatabase, { clock, node }: { clock: Clock | undefined; node: string }) {
    this.#database = database;
    this.#clock = clock;
    this.#node = node;
  }

  append(batch: TelemetryBatch): Promise<void> {
    const appended = this.#appending.then(() => this.#append(batch));
    this.#appending = appended.catch(() => {});
    return appended;
  }

  async #append(batch: TelemetryBatch): Promise<void> {
    const number = this.#numbers.get(batch) ?? ++this.#lastNumber;
    this.#numbers.set(batch, number);
    await notePermissionUses(this.#database, batch.events);
    const counts = Object.entries(batch.counts).filter(([, value]) => value !== 0);
    await this.#database.sql(APPEND, [
      this.#node,
      this.#id,
      number,
      JSON.stringify(batch.logs.map(logColumns)),
      JSON.stringify(batch.events.map(eventColumns)),
      JSON.stringify(Object.fromEntries(counts)),
      JSON.stringify((batch.dropped ?? []).map(droppedColumns)),
      this.#clock?.now() ?? null,
    ]);
  }
}

function logColumns(log: KeptLog): object {
  const row = logRowOf(log);
  return {
    ...row,
    service: jsonText(row.service),
    tenant_id: indexed(row.tenant_id),
    request_id: indexed(row.request_id),
    trace_id: indexed(row.trace_id),
    span_id: indexed(row.span_id),
    plugin_id: indexed(row.plugin_id),
    run_id: indexed(row.run_id),
    source: jsonText(row.source),
    layer: jsonText(row.layer),
    message: jsonText(row.message),
    words: searchVector(row.message),
  };
}

function eventColumns(kept: KeptEvent): object {
  const row = eventRowOf(kept);
  return {
    ...row,
    event_id: jsonText(row.event_id),
    type: indexedText(row.type),
    product: indexedText(row.product),
    version: jsonText(row.version),
    run_id: indexedText(row.run_id),
    tenant_id: indexed(row.tenant_id),
    actor_key: indexedText(actorKey(kept.event.actor)),
    keep: kept.keep,
  };
}

function droppedColumns({ tenantId, service, ...rest }: DroppedLines): object {
  return {
    ...rest,
    service: indexedText(service),
    tenant_id: indexedText(tenantId ?? UNKNOWN_TENANT),
  };
}

function indexed(text: string | null): string | null {
  return text === null ? null : indexedText(text);
}
