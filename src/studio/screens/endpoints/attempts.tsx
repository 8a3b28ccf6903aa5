import type { MessageAttempt } from '../../../contracts/message-records.ts';
import { endpointHref, messageHref } from '../../app/portal-address.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Preformatted } from '../../ui/json.tsx';
import { Status } from '../../ui/status.tsx';
import { Duration, Time } from '../../ui/time.tsx';

interface AttemptsProps {
  attempts: readonly MessageAttempt[];
  label: string;
  /** The thing whose attempts these are. Its column is left out. */
  of: 'endpoint' | 'message';
}

/** Attempts with the start of each answer. */
export function Attempts({ attempts, label, of }: AttemptsProps) {
  return <DataTable label={label} columns={COLUMNS[of]} items={attempts} keyOf={keyOf} />;
}

export const keyOf = ({ messageId, endpointId, number, startedAt }: MessageAttempt): string =>
  `${messageId} ${endpointId} ${number} ${startedAt}`;

const TRIGGERS = { first: 'first', retry: 'retry', replay: 'replay', test: 'test' } as const;

/** What an endpoint answered, or why there is no answer. */
export function Answer({ attempt }: { attempt: MessageAttempt }) {
  const { responseStatus, responseExcerpt, error, messageId, number } = attempt;
  return (
    <>
      {responseStatus !== null && `HTTP ${responseStatus}`} {error}
      {responseExcerpt && (
        <details>
          <summary>Start of the answer</summary>
          <Preformatted text={responseExcerpt} label={`Answer to attempt ${number} of ${messageId}`} />
        </details>
      )}
    </>
  );
}

const SHARED: ReadonlyArray<Column<MessageAttempt>> = [
  { name: 'Started', value: ({ startedAt }) => <Time ms={startedAt} /> },
  { name: 'Outcome', value: ({ outcome }) => <Status value={outcome} /> },
  { name: 'Attempt', value: ({ number, trigger }) => `${number} (${TRIGGERS[trigger]})` },
  { name: 'Duration', isNumber: true, value: ({ durationMs }) => <Duration ms={durationMs} /> },
  { name: 'Answer', value: (attempt) => <Answer attempt={attempt} /> },
  {
    name: 'Next attempt',
    value: ({ nextAttemptAt }) => (nextAttemptAt === null ? '–' : <Time ms={nextAttemptAt} />),
  },
];

const COLUMNS = {
  endpoint: [
    {
      name: 'Message',
      value: ({ type, messageId, trigger }: MessageAttempt) =>
        trigger === 'test' ? type : <a href={messageHref(messageId)}>{type}</a>,
    },
    ...SHARED,
  ],
  message: [
    {
      name: 'Endpoint',
      value: ({ endpointId }: MessageAttempt) => <a href={endpointHref(endpointId)}>{endpointId}</a>,
    },
    ...SHARED,
  ],
};
