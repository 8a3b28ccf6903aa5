import { useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import type { OutgoingEndpoint } from '../../../contracts/message-records.ts';
import { call, type Input } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import { useQuery } from '../../api/query.ts';
import { useCan } from '../../api/role.ts';
import { IS_PORTAL, messagesHref, PORTAL } from '../../app/portal-address.ts';
import { ConfirmButton } from '../../ui/confirm-button.tsx';
import { durationText } from '../../ui/duration-text.ts';
import { Facts } from '../../ui/facts.tsx';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { MoreButton } from '../../ui/more-button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { useForm } from '../../ui/use-form.ts';
import { useRefresh } from '../../ui/use-refresh.ts';
import { ObjectAlerts } from '../alerts/object-alerts.tsx';
import { Attempts, keyOf } from './attempts.tsx';
import { bodyOf, EndpointFields, valuesOf } from './endpoint-form.tsx';
import { EndpointState, successText } from './endpoint-state.tsx';
import { NewSecret } from './new-secret.tsx';
import { ReplayEndpoint } from './replay-endpoint.tsx';
import { TestEndpoint } from './test-endpoint.tsx';
import { Toggle } from './toggle.tsx';

/** All links of an application together may make 300 calls a minute. */
const POLL_MS = IS_PORTAL ? 15_000 : 5000;

/** One endpoint: its settings, a test, its attempts, and what can be sent again. A portal names it by `id`. */
export default function Endpoint(props: { id?: string }) {
  const route = useRoute();
  const id = props.id ?? route.params.id!;
  const { data, error, reload } = useQuery('getEndpoint', { params: { id } }, { everyMs: POLL_MS });
  const action = useAction();
  const canEdit = useCan('editor');
  const [secret, setSecret] = useState<string>();
  return (
    <Page
      title={data ? data.url : 'Endpoint'}
      {...(IS_PORTAL ? {} : { command: `svc endpoints show ${id}` })}
      actions={data && canEdit && <Actions {...{ endpoint: data, action, reload, onSecret: setSecret }} />}
    >
      <Notice action={action} />
      {secret && data && <NewSecret secret={secret} url={data.url} onClose={() => setSecret(undefined)} />}
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the endpoint" />}
      {data && (
        <>
          <EndpointFacts endpoint={data} />
          {canEdit && <Edit key={data.updatedAt} {...{ endpoint: data, action, reload }} />}
          {canEdit && <TestEndpoint id={id} />}
          {canEdit && <ReplayEndpoint id={id} isDisabled={data.disabled} />}
          {!IS_PORTAL && <ObjectAlerts id={id} />}
          <AttemptList id={id} />
        </>
      )}
    </Page>
  );
}

interface PartProps {
  endpoint: OutgoingEndpoint;
  action: Action;
  reload: () => void;
}

const ROTATION =
  'Replace the secret? For 24 hours, messages have signatures by both secrets, so that the receiver can change it without a gap.';

function Actions({ endpoint, action, reload, onSecret }: PartProps & { onSecret: (secret: string) => void }) {
  const { route } = useLocation();
  const params = { id: endpoint.id };
  const rotate = async (): Promise<string> => {
    const { secret } = await call('rotateEndpoint', { params, body: {} });
    onSecret(secret);
    reload();
    return 'The secret is replaced. The previous one remains valid for 24 hours.';
  };
  const remove = async (): Promise<string> => {
    await call('deleteEndpoint', { params });
    route(IS_PORTAL ? PORTAL : '/studio/endpoints');
    return '';
  };
  return (
    <>
      <Toggle {...{ endpoint, action, reload }} />
      <ConfirmButton
        label="Rotate secret"
        question={ROTATION}
        isDisabled={action.isBusy}
        onConfirmed={() => action.run(rotate)}
      />
      <ConfirmButton
        label="Delete"
        question={`Delete the endpoint ${endpoint.url}? Its waiting messages are cancelled.`}
        isDisabled={action.isBusy}
        onConfirmed={() => action.run(remove)}
      />
    </>
  );
}

function EndpointFacts({ endpoint }: { endpoint: OutgoingEndpoint }) {
  const { id, types, application, description, failingSince, previousSecretExpiresAt } = endpoint;
  const headers = Object.keys(endpoint.headers);
  return (
    <Facts
      facts={[
        ['State', <EndpointState key="state" endpoint={endpoint} />],
        ['Failing since', failingSince && <Time key="since" ms={failingSince} />],
        ['Success', successText(endpoint)],
        ['Event types', types.join(', ')],
        ['Application', IS_PORTAL ? null : application],
        ['Description', description],
        ['Attempts per second', endpoint.rateLimitPerSecond],
        ['Order', endpoint.ordered ? 'one message after the other' : null],
        ['Attempts after', endpoint.retrySchedule.map(delayText).join(', ')],
        ['Time of an attempt', delayText(endpoint.timeoutMs / 1000)],
        ['Further headers', headers.length === 0 ? null : headers.join(', ')],
        [
          'Previous secret valid until',
          previousSecretExpiresAt && <Time key="until" ms={previousSecretExpiresAt} />,
        ],
        [
          'Messages',
          <a key="messages" href={messagesHref({ endpointId: id })}>
            all
          </a>,
        ],
        [
          'Dead letters',
          <a key="dead" href={messagesHref({ endpointId: id, status: 'dead' })}>
            messages without success
          </a>,
        ],
        ['Id', <code key="id">{id}</code>],
      ]}
    />
  );
}

/** Returns seconds as `5 s`, `5 min` or `2 h`. */
const delayText = (seconds: number): string =>
  durationText(seconds * 1000).replace(/\.0 s$| 0 (?:s|min)$/, (end) => (end === '.0 s' ? ' s' : ''));

function Edit({ endpoint, action, reload }: PartProps) {
  const before = valuesOf(endpoint);
  const form = useForm(before, action, async (values) => {
    const body = bodyOf(values, before) as Input<'updateEndpoint'>['body'];
    await call('updateEndpoint', { params: { id: endpoint.id }, body });
    reload();
    return 'The endpoint is changed.';
  });
  const [isOpen, setOpen] = useState(false);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Edit the endpoint</summary>
      {isOpen && (
        <form class="schema-form" onSubmit={form.onSubmit}>
          <EndpointFields id="endpoint" form={form} isNew={false} hasApplication={!IS_PORTAL} />
          <div class="actions">
            <button type="submit" class="primary" disabled={action.isBusy}>
              Save
            </button>
            <button
              type="button"
              onClick={() => {
                form.reset();
                setOpen(false);
              }}
            >
              Discard
            </button>
          </div>
        </form>
      )}
    </details>
  );
}

const FILTERS = [{ name: 'outcome', label: 'Outcome', options: ['succeeded', 'failed'] }] as const;
const NAMES = FILTERS.map(({ name }) => name);
const PAGE = 50;

function AttemptList({ id }: { id: string }) {
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listEndpointAttempts', { ...filters, limit: PAGE } as never, { id });
  useRefresh(pages, { keyOf, pageSize: PAGE, everyMs: POLL_MS });
  return (
    <Section title="Attempts">
      <Filters filters={FILTERS} values={filters} onChange={change} />
      {pages.error && <Failure error={pages.error} onRetry={pages.reload} />}
      {!pages.error &&
        pages.items.length === 0 &&
        (pages.isLoading ? (
          <Loading what="attempts" />
        ) : (
          <Empty>No attempt matches. Attempts appear with the first message, or with a test.</Empty>
        ))}
      {pages.items.length > 0 && <Attempts attempts={pages.items} label="Attempts" of="endpoint" />}
      <MoreButton pages={pages} />
    </Section>
  );
}
