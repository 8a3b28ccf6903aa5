import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { useQuery } from '../../api/query.ts';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';

const MAX_LINES = 200;
/** Log lines are stored in batches, so the last ones come after the end of a delivery. */
const LATE_MS = 30_000;
const POLL_MS = 2000;

/** Log lines of the trace of a delivery, oldest first. They are read again while more can come. */
export function DeliveryLog({
  delivery,
  isRunning,
}: {
  delivery: WebhookDeliveryDetails;
  isRunning: boolean;
}) {
  const { traceId, receivedAt, durationMs } = delivery;
  const isLate = Date.now() > receivedAt + (durationMs ?? 0) + LATE_MS;
  const { data, error, reload } = useQuery(
    'queryLogs',
    { query: { traceId, limit: MAX_LINES } as never },
    isRunning || !isLate ? { everyMs: POLL_MS } : {},
  );
  const items = data?.items.toReversed() ?? [];
  const href = `/studio/logs?traceId=${encodeURIComponent(traceId)}`;
  return (
    <Section title="Log" actions={<a href={href}>Open in the logs</a>}>
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the log" />}
      {data && items.length === 0 && <p>No log line of this delivery is stored. Old lines are deleted.</p>}
      {items.length === MAX_LINES && <p>Only the newest {MAX_LINES} lines are shown.</p>}
      {items.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard.
        <ol class="log" aria-label="Log of the delivery" tabIndex={0}>
          {items.map(({ time, level, serviceId, message }, index) => (
            <li key={`${time}-${index}`} class={level}>
              <Time ms={time} /> {level} {serviceId}: {message}
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}
