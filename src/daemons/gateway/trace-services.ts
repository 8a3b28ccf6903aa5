import { HEADERS, listEvents, listTracedRuns, queryLogs } from '../../contracts/index.ts';
import { type CallOptions, createClient, serviceHeaders } from '../../http/index.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { WebhookInbox } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { type TraceReader, type TraceSources, Traces } from './domain/traces/traces.ts';

const TIMEOUT_MS = seconds(10);
const MAX_DELIVERIES = 20;
/** Maximum number of log records and events that are read, which is the maximum of a page. */
const MAX_RECORDS = 1000;

/** Builds the traces of this gateway, which reads runs, logs and events from other services. */
export function traceServices(
  { peers, keys, clock, logger }: Resources,
  { inbox }: { inbox: Pick<WebhookInbox, 'ofTrace'> },
): { traces: Traces } {
  const workflow = createClient({ url: () => peers.urlOf('workflow'), peer: 'workflow service' });
  const rest = createClient({ url: () => peers.urlOf('rest'), peer: 'REST service' });
  const options = ({ hostId, namespaceId, requestId, traceId }: TraceReader): CallOptions => ({
    timeoutMs: TIMEOUT_MS,
    headers: {
      ...serviceHeaders(keys.internalSecret, { hostId, namespaceId }),
      [HEADERS.requestId]: requestId,
      [HEADERS.traceId]: traceId,
    },
  });
  // Administrators would get records of all namespaces without `tenantId`.
  const records = ({ namespaceId }: TraceReader, traceId: string) => ({
    query: { traceId, tenantId: namespaceId, limit: MAX_RECORDS },
  });
  const sources: TraceSources = {
    async deliveries({ namespaceId }, traceId) {
      const found = await inbox.ofTrace(namespaceId, traceId, MAX_DELIVERIES + 1);
      return { items: found.slice(0, MAX_DELIVERIES), hasMore: found.length > MAX_DELIVERIES };
    },
    async runs(reader, traceId) {
      const { runs, truncated } = await workflow.call(
        listTracedRuns,
        { params: { traceId } },
        options(reader),
      );
      return { items: runs, hasMore: truncated };
    },
    async logs(reader, traceId) {
      const { items, total } = await rest.call(queryLogs, records(reader, traceId), options(reader));
      return { items, hasMore: total > items.length };
    },
    async events(reader, traceId) {
      const { items, total } = await rest.call(listEvents, records(reader, traceId), options(reader));
      return { items, hasMore: total > items.length };
    },
  };
  return { traces: new Traces({ sources, clock, logger }) };
}
