import { useState } from 'preact/hooks';
import { outdate } from '../../api/query.ts';
import { BulkBar } from '../../ui/bulk/bulk-bar.tsx';
import type { BulkJob } from '../../ui/bulk/bulk-job.ts';
import { useBulk } from '../../ui/bulk/use-bulk.ts';
import { Field } from '../../ui/field.tsx';
import { Section } from '../../ui/section.tsx';

/** Sends messages of a range to the endpoint again. */
export function ReplayEndpoint({ id, isDisabled }: { id: string; isDisabled: boolean }) {
  const [since, setSince] = useState('');
  const [until, setUntil] = useState('');
  const bulk = useBulk({
    list: `bulk-endpoint-${id}`,
    of: [since, until],
    onDone: () => outdate('listEndpointAttempts', 'getEndpoint'),
  });
  const job = (label: string, status: 'dead' | 'all', what: string): { label: string; all: BulkJob } => ({
    label,
    all: {
      ...{ endpoint: 'replayEndpoint', label: 'Replay', params: { id } },
      selection: `${what}${since && `, since ${since}`}${until && `, before ${until}`}`,
      body: {
        status,
        ...(since ? { since: timeOf(since) } : {}),
        ...(until ? { until: timeOf(until) } : {}),
      },
    },
  });
  return (
    <Section title="Send again">
      {isDisabled ? (
        <p>Nothing is sent to a disabled endpoint. Enable it first.</p>
      ) : (
        <>
          <p>Messages keep their id, so that a receiver recognizes those it has handled.</p>
          <div class="filters">
            <Field id="replay-since" label="Since" type="datetime-local" value={since} onInput={setSince} />
            <Field id="replay-until" label="Before" type="datetime-local" value={until} onInput={setUntil} />
          </div>
          <BulkBar
            bulk={bulk}
            noun="messages"
            actions={[
              job('Replay dead letters', 'dead', 'messages that have failed for good'),
              job('Replay all', 'all', 'all messages of the endpoint'),
            ]}
          />
        </>
      )}
    </Section>
  );
}

/** Returns the time of a field, which is in the time zone of the browser, in epoch ms. */
const timeOf = (local: string): number => new Date(local).getTime();
