import { useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { call } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { Facts } from '../../ui/facts.tsx';
import { Json, Preformatted, parsedJson } from '../../ui/json.tsx';
import { Neighbours } from '../../ui/neighbours.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Duration, durationText, Time } from '../../ui/time.tsx';
import { TraceLink } from '../../ui/trace-link.tsx';
import { useAction } from '../../ui/use-action.ts';
import { ObjectAlerts } from '../alerts/object-alerts.tsx';
import { TraceMessages } from '../messages/trace-messages.tsx';
import { Compare } from './compare.tsx';
import { CopyCurl } from './copy-curl.tsx';
import { DeliveryLog } from './delivery-log.tsx';
import { Fixture } from './fixture.tsx';
import { StartedRuns } from './started-runs.tsx';
import { Why } from './why.tsx';

const RUNNING = ['accepted', 'running', 'retrying'];
/** Why deliveries of a status cannot be replayed. */
const NOT_REPLAYABLE: Partial<Record<string, string>> = {
  refused: 'The request of this refused delivery is not stored, so it cannot be replayed.',
  challenge: 'A challenge has no handler, so it cannot be replayed.',
  duplicate: 'A duplicate cannot be replayed. Replay the first delivery instead.',
  ...Object.fromEntries(RUNNING.map((status) => [status, 'The delivery can be replayed when it has ended.'])),
};

export default function Delivery() {
  const { params } = useRoute();
  const webhookId = params.webhookId!;
  const [isRunning, setRunning] = useState(false);
  const { data, error, reload } = useQuery(
    'getDelivery',
    { params: { webhookId } },
    isRunning ? { everyMs: 1000 } : {},
  );
  const nowRunning = data !== undefined && RUNNING.includes(data.status);
  if (nowRunning !== isRunning) setRunning(nowRunning);
  return (
    <Page
      title={data ? `${data.pluginId}/${data.event}` : 'Delivery'}
      command={`svc webhooks show ${webhookId}`}
      actions={data && <Actions delivery={data} />}
    >
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the delivery" />}
      {data && <Details delivery={data} />}
    </Page>
  );
}

function Actions({ delivery }: { delivery: WebhookDeliveryDetails }) {
  const { route } = useLocation();
  const action = useAction();
  const whyNot = delivery.replayableUntil === null ? NOT_REPLAYABLE[delivery.status] : undefined;
  const replay = async (): Promise<string> => {
    const { webhookId } = await call('replayDelivery', { params: { webhookId: delivery.webhookId } });
    route(`/studio/deliveries/${webhookId}`);
    return '';
  };
  return (
    <>
      {action.isFailed && (
        <span class="error" role="alert">
          {action.message}
        </span>
      )}
      <Neighbours href={`/studio/deliveries/${delivery.webhookId}`} />
      <CopyCurl delivery={delivery} />
      <button
        type="button"
        class="primary"
        disabled={whyNot !== undefined || action.isBusy}
        aria-describedby={whyNot && 'why-no-replay'}
        onClick={() => action.run(replay)}
      >
        Replay
      </button>
      {whyNot && (
        <span id="why-no-replay" class="hint">
          {whyNot}
        </span>
      )}
    </>
  );
}

function Details({ delivery }: { delivery: WebhookDeliveryDetails }) {
  const { status, reason, steps, attemptHistory, outcome } = delivery;
  return (
    <>
      <p class="verdict">
        <Status value={status} /> {reason}
      </p>
      <Why delivery={delivery} />
      <StartedRuns outcome={outcome} />
      <Facts facts={factsOf(delivery)} />
      <Section title="Steps">
        <ol class="steps">
          {steps.map(({ step, outcome: result, durationMs }) => (
            <li key={step} class={result === 'ok' || result === 'passed' ? 'passed' : 'stopped'}>
              <span>{step}</span> <span>{result}</span> <span class="number">{durationText(durationMs)}</span>
            </li>
          ))}
        </ol>
      </Section>
      {attemptHistory.length > 0 && (
        <Section title="Attempts">
          <table>
            <thead>
              <tr>
                <th>Started</th>
                <th>Outcome</th>
                <th>Duration</th>
                <th>Error</th>
              </tr>
            </thead>
            <tbody>
              {attemptHistory.map((attempt) => (
                <tr key={attempt.startedAt}>
                  <td>
                    <Time ms={Date.parse(attempt.startedAt)} />
                  </td>
                  <td>{attempt.outcome}</td>
                  <td class="number">{durationText(attempt.durationMs)}</td>
                  <td>{attempt.error ?? ''}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Section>
      )}
      <TraceMessages traceId={delivery.traceId} />
      <ObjectAlerts id={delivery.webhookId} />
      <DeliveryLog delivery={delivery} isRunning={RUNNING.includes(status)} />
      <Body delivery={delivery} />
      <Section title="Headers">
        <table class="headers">
          <tbody>
            {delivery.headers.map(([name, value], index) => (
              <tr key={index}>
                <th scope="row">{name}</th>
                <td>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Section>
      {outcome !== null && (
        <Section title="Result of the handler">
          <Json value={outcome} label="Result of the handler" />
        </Section>
      )}
      <Compare delivery={delivery} />
      <Fixture delivery={delivery} />
    </>
  );
}

function factsOf(delivery: WebhookDeliveryDetails) {
  const { webhookId, httpStatus, mode, origin, source, receivedAt, durationMs, bodyBytes } = delivery;
  const { replayOf, replayedBy, traceId, nextAttemptAt, instanceId } = delivery;
  return [
    ['Id', <code key="id">{webhookId}</code>],
    ['Received', <Time key="received" ms={receivedAt} />],
    ['Answered', httpStatus === null ? 'not yet' : String(httpStatus)],
    ['Duration', <Duration key="duration" ms={durationMs} />],
    ['Next attempt', nextAttemptAt === null ? null : <Time key="next" ms={nextAttemptAt} />],
    ['Mode', mode],
    ['Origin', origin === 'sender' ? `sender at ${source}` : origin],
    ['Instance', instanceId],
    ['Body', `${bodyBytes} bytes`],
    ['Trace', <TraceLink key="trace" id={traceId} />],
    [origin === 'replay' ? 'Replay of' : 'Received as', replayOf && <DeliveryLink key="of" id={replayOf} />],
    ['Replayed by', replayedBy && <DeliveryLink key="by" id={replayedBy} />],
  ] as const;
}

function DeliveryLink({ id }: { id: string }) {
  return (
    <a href={`/studio/deliveries/${id}`}>
      <code>{id}</code>
    </a>
  );
}

function Body({ delivery: { body, bodyEncoding } }: { delivery: WebhookDeliveryDetails }) {
  const [isRaw, setRaw] = useState(false);
  if (body === null) {
    return (
      <Section title="Body">
        <p>The body is not stored. Bodies of refused deliveries and of old ones are deleted after a time.</p>
      </Section>
    );
  }
  const parsed = bodyEncoding === 'utf8' ? parsedJson(body) : undefined;
  return (
    <Section
      title="Body"
      actions={
        parsed !== undefined && (
          <button type="button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
            Raw
          </button>
        )
      }
    >
      {parsed !== undefined && !isRaw ? (
        <Json value={parsed} label="Parsed body" />
      ) : (
        <Preformatted text={body} label={`Body (${bodyEncoding})`} />
      )}
    </Section>
  );
}
