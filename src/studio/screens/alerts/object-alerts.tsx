import { useQuery } from '../../api/query.ts';
import { Section } from '../../ui/section.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';

const MAX_SHOWN = 10;

/** Alerts about an object, such as a delivery, a run or an endpoint; of a message also those about its endpoints. */
export function ObjectAlerts({ id }: { id: string }) {
  const query = { object: id, limit: MAX_SHOWN };
  const { data } = useQuery('listAlerts', { query }, { everyMs: 5000 });
  // The section is an addition to a screen, which also works without it.
  if (!data || data.items.length === 0) return null;
  const all = `/studio/alerts?${new URLSearchParams({ object: id })}`;
  return (
    <Section title="Alerts" actions={<a href={all}>All alerts about it</a>}>
      <ul class="sentences">
        {data.items.map((alert) => (
          <li key={alert.id}>
            <Status value={alert.state} /> <a href={`/studio/alerts/${alert.id}`}>{alert.title}</a> (rule{' '}
            {alert.rule}), <Time ms={alert.lastAt} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
