import { useQuery } from '../../api/query.ts';
import { Section } from '../../ui/section.tsx';
import { Status } from '../../ui/status.tsx';
import { countsText, statusOf } from './message-status.tsx';

/** Messages that are listed. Further ones are on their own screen. */
const MAX_SHOWN = 10;

/** Messages that were sent within a trace: those of a delivery, and of the runs that it started. */
export function TraceMessages({ traceId }: { traceId: string }) {
  const query = { traceId, limit: MAX_SHOWN };
  const { data } = useQuery('listMessages', { query }, { everyMs: 5000 });
  // The section is an addition to a screen, which also works without it.
  if (!data || data.items.length === 0) return null;
  const all = `/studio/messages?${new URLSearchParams({ traceId })}`;
  return (
    <Section title="Messages" actions={<a href={all}>All messages of the trace</a>}>
      <ul class="sentences">
        {data.items.map(({ id, type, deliveries }) => (
          <li key={id}>
            <Status value={statusOf(deliveries)} /> <a href={`/studio/messages/${id}`}>{type}</a>:{' '}
            {countsText(deliveries)}
          </li>
        ))}
      </ul>
    </Section>
  );
}
