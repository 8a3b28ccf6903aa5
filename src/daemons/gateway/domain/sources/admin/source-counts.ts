import { type DestinationCounts, SOURCES_PLUGIN_ID } from '../../../../../contracts/index.ts';
import { isRecord } from '../../../../../kit/data/is-record.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../../../store/ports/index.ts';
import type { FannedOut } from '../fan-out.ts';

/** Newest deliveries that are counted. The time of a count does not depend on the number of stored deliveries. */
const MAX_COUNTED = 1000;
const PAGE = 200;
const NONE: DestinationCounts = { accepted: 0, retrying: 0, succeeded: 0, failed: 0, dead: 0, filtered: 0 };

export interface SourceCounts {
  byDestination: ReadonlyMap<string, DestinationCounts>;
  counted: { deliveries: number; complete: boolean };
}

/** Counts the newest deliveries of a source by destination and status. */
export async function countDeliveriesOf(
  inbox: Pick<WebhookInbox, 'list'>,
  namespaceId: string,
  name: string,
): Promise<SourceCounts> {
  const byDestination = new Map<string, DestinationCounts>();
  const of = (destination: string): DestinationCounts => {
    const counts = byDestination.get(destination) ?? { ...NONE };
    byDestination.set(destination, counts);
    return counts;
  };
  let deliveries = 0;
  let before: Parameters<WebhookInbox['list']>[1]['before'];
  for (;;) {
    const page = await inbox.list(namespaceId, {
      ...{ pluginId: SOURCES_PLUGIN_ID, event: name, limit: PAGE },
      before,
    });
    for (const record of page.items) count(record, of);
    deliveries += page.items.length;
    if (page.next === null) return { byDestination, counted: { deliveries, complete: true } };
    if (deliveries >= MAX_COUNTED) return { byDestination, counted: { deliveries, complete: false } };
    before = page.next;
  }
}

function count(record: DeliveryRecord, of: (destination: string) => DestinationCounts): void {
  const { instanceId, outcome } = record;
  const result = outcome === null ? undefined : resultOf(outcome);
  if (instanceId === '') {
    const destinations = isRecord(result) && Array.isArray(result.destinations) ? result.destinations : [];
    for (const each of destinations as FannedOut[]) if ('filtered' in each) of(each.destination).filtered++;
    return;
  }
  const key = isRecord(result) && result.filtered === true ? 'filtered' : statusOf(record);
  if (key) of(instanceId)[key]++;
}

function statusOf({ status }: DeliveryRecord): keyof DestinationCounts | undefined {
  if (status === 'running') return 'accepted';
  return status in NONE ? (status as keyof DestinationCounts) : undefined;
}

function resultOf(outcome: string): unknown {
  return (JSON.parse(outcome) as { result?: unknown }).result;
}
