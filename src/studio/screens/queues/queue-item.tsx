import { useRoute } from 'preact-iso';
import type { QueueItemDetails } from '../../../contracts/queue-records.ts';
import { call } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { Facts } from '../../ui/facts.tsx';
import { Json, Preformatted } from '../../ui/json.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { useAction } from '../../ui/use-action.ts';

export default function QueueItem() {
  const { queue, id } = useRoute().params as { queue: string; id: string };
  const params = { name: queue, id };
  const { data, error, reload } = useQuery('getQueueItem', { params });
  const action = useAction();
  const retry = async (): Promise<string> => {
    await call('retryItem', { params });
    outdate('getQueueItem', 'getQueue', 'listQueues');
    return 'The item waits again.';
  };
  return (
    <Page
      title={id}
      command={`svc queues show ${shellWord(queue)} ${shellWord(id)}`}
      actions={
        data?.status === 'dead' && (
          <button type="button" disabled={action.isBusy} onClick={() => action.run(retry)}>
            Retry
          </button>
        )
      }
    >
      <Notice action={action} />
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the item" />}
      {data && <Details queue={queue} item={data} />}
    </Page>
  );
}

const timeOrNull = (ms: number | null) => (ms === null ? null : <Time ms={ms} />);

function Details({ queue, item }: { queue: string; item: QueueItemDetails }) {
  const { status, attempt, receivedAt, deliveryId, orderKey, content, lastError } = item;
  return (
    <>
      <Facts
        facts={[
          [
            'Queue',
            <a key="queue" href={`/studio/queues/${encodeURIComponent(queue)}`}>
              {queue}
            </a>,
          ],
          ['Status', <Status key="status" value={status} />],
          ['Attempt', attempt],
          ['Received', <Time key="received" ms={receivedAt} />],
          ['Delivery', deliveryId && <a href={`/studio/deliveries/${deliveryId}`}>{deliveryId}</a>],
          ['Order key', orderKey],
          ['Available', timeOrNull(item.availableAt)],
          ['Leased until', timeOrNull(item.leasedUntil)],
          ['Ended', timeOrNull(item.endedAt)],
          ['Last error', lastError],
        ]}
      />
      {content && (
        <>
          <Section title="Headers">
            <Json label="Headers" value={content.headers} />
          </Section>
          <Section title="Body">
            {content.body === null && content.bodyBase64 !== undefined ? (
              <Preformatted label="Body in base64" text={content.bodyBase64} />
            ) : (
              <Json label="Body" value={content.body} />
            )}
          </Section>
        </>
      )}
    </>
  );
}
