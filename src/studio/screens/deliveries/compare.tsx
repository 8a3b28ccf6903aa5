import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { useFilters } from '../../ui/filters.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { compare, type Difference, MAX_DIFFERENCES } from './difference.ts';

/** Number of deliveries of the same webhook that are offered for a comparison. */
const OFFERED = 50;

/** Compares a delivery with another one of the same webhook. The address names the other one. */
export function Compare({ delivery }: { delivery: WebhookDeliveryDetails }) {
  const [{ compare: otherId = '' }, change] = useFilters(['compare']);
  const { webhookId, pluginId, event } = delivery;
  const { data } = useQuery('listDeliveries', { query: { pluginId, event, limit: OFFERED } as never });
  const offered = (data?.items ?? []).filter((item) => item.webhookId !== webhookId);
  const isListed = otherId === '' || offered.some((item) => item.webhookId === otherId);
  return (
    <Section title="Compare">
      <div class="filters">
        <div>
          <label for="compare-with">With</label>
          <select
            id="compare-with"
            value={otherId}
            onChange={({ currentTarget }) => change('compare', currentTarget.value)}
          >
            <option value="">no other delivery</option>
            {!isListed && <option value={otherId}>{otherId}</option>}
            {offered.map((item) => (
              <option key={item.webhookId} value={item.webhookId}>
                {new Date(item.receivedAt).toLocaleString()} {item.status} {item.webhookId.slice(-12)}
              </option>
            ))}
          </select>
        </div>
      </div>
      {otherId !== '' && <Comparison key={otherId} delivery={delivery} otherId={otherId} />}
    </Section>
  );
}

function Comparison({ delivery, otherId }: { delivery: WebhookDeliveryDetails; otherId: string }) {
  const { data, error, reload } = useQuery('getDelivery', { params: { webhookId: otherId } });
  if (error) return <Failure error={error} onRetry={reload} />;
  if (!data) return <Loading what="the other delivery" />;
  return (
    <>
      {compare(delivery, data).map(({ title, differences }) => (
        <div key={title}>
          <h3>{title}</h3>
          {differences.length === 0 ? (
            <p>The same.</p>
          ) : (
            <DataTable
              label={`Differences: ${title}`}
              columns={COLUMNS}
              items={differences}
              keyOf={({ path }) => path}
            />
          )}
          {differences.length >= MAX_DIFFERENCES && <p>Only the first {MAX_DIFFERENCES} are shown.</p>}
        </div>
      ))}
    </>
  );
}

const COLUMNS: ReadonlyArray<Column<Difference>> = [
  { name: 'Field', value: ({ path }) => <code>{path}</code> },
  { name: 'This delivery', value: ({ left }) => <Side text={left} /> },
  { name: 'The other one', value: ({ right }) => <Side text={right} /> },
];

function Side({ text }: { text: string | undefined }) {
  return text === undefined ? <span class="reason">missing</span> : <code>{text}</code>;
}
