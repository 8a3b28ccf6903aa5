import type {
  AnalyticsEvent,
  LogRecord,
  Trace,
  TracedRun,
  TraceSource,
  TraceSpan,
} from '../../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { DeliveryRecord } from '../../../../store/ports/index.ts';
import { deliverySpans } from './delivery-spans.ts';
import { eventSpan, requestSpan } from './record-spans.ts';
import { runSpans } from './run-spans.ts';
import { orderSpans } from './span-tree.ts';

/** Caller of a trace query, with the ids of its own request. */
export interface TraceReader {
  hostId: string;
  namespaceId: string;
  requestId: string;
  traceId: string;
}

/** Items that a source found, and whether it has more. */
export interface Found<Item> {
  items: readonly Item[];
  hasMore: boolean;
}

/** Sources of a trace. Each answers with records of the reader's namespace only. */
export interface TraceSources {
  deliveries(reader: TraceReader, traceId: string): Promise<Found<DeliveryRecord>>;
  runs(reader: TraceReader, traceId: string): Promise<Found<TracedRun>>;
  logs(reader: TraceReader, traceId: string): Promise<Found<LogRecord>>;
  events(reader: TraceReader, traceId: string): Promise<Found<AnalyticsEvent>>;
}

export interface TracesDeps {
  sources: TraceSources;
  clock: Clock;
  logger: Logger;
}

/** Joins what the services store about a trace. @spec docs/observability.md "Traces" */
export class Traces {
  readonly #deps: TracesDeps;

  constructor(deps: TracesDeps) {
    this.#deps = deps;
  }

  /** Returns the spans of a trace. Throws NOT_FOUND if the reader's namespace has no part of the trace. */
  async get(reader: TraceReader, traceId: string, limit: number): Promise<Trace> {
    const { sources, clock } = this.#deps;
    const read = <Item>(
      name: TraceSource,
      query: () => Promise<Found<Item>>,
      spans: (item: Item) => TraceSpan[],
    ) => this.#read(reader, name, query, spans);
    // A delivery and the request that sent it have the same span id. The delivery comes first, because it says more.
    const parts = await Promise.all([
      read('deliveries', () => sources.deliveries(reader, traceId), deliverySpans),
      read('runs', () => sources.runs(reader, traceId), runSpans),
      read(
        'logs',
        () => sources.logs(reader, traceId),
        (log) => present(requestSpan(log)),
      ),
      read(
        'events',
        () => sources.events(reader, traceId),
        (event) => present(eventSpan(event)),
      ),
    ]);
    const missing = parts.flatMap((part) => ('missing' in part ? [part.missing] : []));
    const found = parts.flatMap((part) => ('missing' in part ? [] : [part]));
    const ordered = orderSpans(found.flatMap(({ spans }) => spans));
    if (ordered.length === 0) throw nothingFound(traceId, missing);
    const spans = ordered.slice(0, limit);
    const truncated = ordered.length > limit || found.some(({ hasMore }) => hasMore);
    return { traceId, ...periodOf(spans, clock.now()), spans, truncated, missing };
  }

  async #read<Item>(
    { requestId, traceId }: TraceReader,
    name: TraceSource,
    query: () => Promise<Found<Item>>,
    spans: (item: Item) => TraceSpan[],
  ): Promise<{ spans: TraceSpan[]; hasMore: boolean } | { missing: TraceSource }> {
    try {
      const { items, hasMore } = await query();
      return { spans: items.flatMap(spans), hasMore };
    } catch (error) {
      this.#deps.logger.warn(`The ${name} of a trace could not be read: ${messageOf(error)}`, {
        requestId,
        traceId,
      });
      return { missing: name };
    }
  }
}

function present(span: TraceSpan | undefined): TraceSpan[] {
  return span ? [span] : [];
}

function periodOf(spans: readonly TraceSpan[], now: number): Pick<Trace, 'startedAt' | 'durationMs'> {
  const startedAt = Math.min(...spans.map((span) => span.startedAt));
  const ends = spans.map((span) => (span.durationMs === null ? now : span.startedAt + span.durationMs));
  return { startedAt, durationMs: Math.max(...ends) - startedAt };
}

function nothingFound(traceId: string, missing: readonly TraceSource[]): PlatformError {
  if (missing.length > 0)
    return new PlatformError(
      'UPSTREAM_UNAVAILABLE',
      `The trace could not be read, because these sources did not answer: ${missing.join(', ')}. See \`svc status\`.`,
      { details: { missing } },
    );
  return new PlatformError(
    'NOT_FOUND',
    `There is no trace "${traceId}" in this namespace; it may have been deleted after its retention.`,
    { details: { traceId } },
  );
}
