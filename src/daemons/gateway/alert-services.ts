import { ALL_NAMESPACES, readRunFacts, readWaitingApprovals } from '../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../http/index.ts';
import { postgresUrlOf } from '../../kit/config/store-url.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { instanceId } from '../../kit/files/instance-id.ts';
import { createSeal } from '../../kit/security/keys.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { Membership } from '../membership/membership.ts';
import { OutgoingClient } from '../outgoing/outgoing-client.ts';
import { alertAttemptCounter, createAlertGauges } from './alert-metrics.ts';
import { AlertLoop } from './domain/alerts/alert-loop.ts';
import { AlertViews } from './domain/alerts/alert-views.ts';
import { ChannelAdmin } from './domain/alerts/channel-admin.ts';
import { ChannelCalls } from './domain/alerts/channel-calls.ts';
import {
  type Condition,
  type ExpiringSecret,
  expiringCertificates,
  expiringSecrets,
  lowDisk,
  queueDepth,
  waitingApprovals,
} from './domain/alerts/conditions.ts';
import { Evaluator } from './domain/alerts/evaluator.ts';
import { RuleAdmin } from './domain/alerts/rule-admin.ts';
import { RuleBook } from './domain/alerts/rule-book.ts';
import { Sender } from './domain/alerts/sender.ts';
import { SettingScope } from './domain/alerts/setting-scope.ts';
import { SilenceAdmin } from './domain/alerts/silence-admin.ts';
import type { ConnectionHealth, TroubledConnection } from './domain/connections/connection-health.ts';
import type { Admins } from './domain/identity/admins.ts';
import type { Vault } from './domain/vault/vault.ts';

export interface AlertServicesDeps {
  store: GatewayStore;
  membership: Membership;
  admins: Admins;
  vault: Pick<Vault, 'read'>;
  health: Pick<ConnectionHealth, 'troubled'>;
  /** Deliveries that wait for their handlers. */
  backlog(): number;
}

const FACTS_TIMEOUT_MS = seconds(10);
/** Namespace of the secrets that the config refers to for operators. */
const OPERATOR_NAMESPACE = 'default';

/** Builds the alerts: rules, their evaluation and the channels. @spec docs/alerts.md */
export function alertServices(resources: Resources, deps: AlertServicesDeps, stack: AsyncDisposableStack) {
  const { config, clock, random, logger, metrics, keys, env, address, dataDir, portShare } = resources;
  const store = deps.store.alerts;
  const isFirstOfNode = portShare === undefined || portShare.number === 1;
  const publicUrl = () =>
    (config.gateway.publicUrl ?? `http://localhost:${address.port}`).replace(/\/+$/, '');
  const seal = createSeal(keys.masterKey, keys.previousMasterKeys);
  const book = new RuleBook(store, config.alerts);
  const calls = channelCalls(resources, { ...deps, seal, publicUrl }, stack);
  const scope = new SettingScope(deps.admins);
  const shared = { store, book, scope, clock, random };
  const workflow = workflowReader(resources);
  const onPostgres = postgresUrlOf(config.store, env) !== null;
  const evaluator = new Evaluator({
    ...{ store, book, clock, random, retentionDays: config.alerts.retentionDays },
    readRunFacts: onPostgres ? undefined : workflow.facts,
  });
  const loop = new AlertLoop({
    ...{
      store,
      book,
      evaluator,
      dataDir,
      isFirstOfNode,
      clock,
      logger,
      intervalMs: config.alerts.intervalMs,
    },
    sender: new Sender({
      store,
      book,
      calls,
      clock,
      random,
      logger,
      onAttempt: alertAttemptCounter(metrics),
    }),
    conditions: conditionsOf(resources, deps, workflow.approvals),
    isLeader: leadership(resources, deps),
  });
  stack.adopt(loop, (started) => started.close());
  createAlertGauges(metrics, { store, isReporter: isFirstOfNode, now: () => clock.now() });
  const alertRules = new RuleAdmin(shared);
  const alertChannels = new ChannelAdmin({ ...shared, seal });
  return {
    alertLoop: loop,
    alertRules,
    alertChannels,
    alertSilences: new SilenceAdmin(shared),
    alertViews: new AlertViews({
      ...{ ...shared, calls, publicUrl, changes: evaluator.changes },
      ...{ rules: alertRules, channels: alertChannels },
    }),
  };
}

function channelCalls(
  { config, env, clock }: Resources,
  {
    vault,
    seal,
    publicUrl,
  }: Pick<AlertServicesDeps, 'vault'> &
    Pick<ConstructorParameters<typeof ChannelCalls>[0], 'seal' | 'publicUrl'>,
  stack: AsyncDisposableStack,
): ChannelCalls {
  const { allow, allowPrivateAddresses } = config.outgoing;
  const client = stack.adopt(
    new OutgoingClient({ allowedHosts: allow, setting: 'outgoing.allow' }),
    (opened) => opened.close(),
  );
  return new ChannelCalls({
    ...{ client, allowedHosts: allow, allowPrivateAddresses, env, seal, clock, publicUrl },
    async findSecret(namespaceId, name) {
      const owner = namespaceId === ALL_NAMESPACES ? OPERATOR_NAMESPACE : namespaceId;
      const value = (await vault.read(owner, [name], true)).get(name);
      if (value !== undefined) return value;
      throw new PlatformError(
        'NOT_FOUND',
        `The namespace ${owner} has no secret ${name}. Set it with \`svc secrets set ${name}\`.`,
      );
    },
  });
}

/** The oldest gateway that has not ended evaluates the rules. Commits are safe without it; it saves work. */
function leadership(
  { sharesStore }: Resources,
  { store, membership }: Pick<AlertServicesDeps, 'store' | 'membership'>,
): () => Promise<boolean> {
  if (!sharesStore) return async () => true;
  return async () => {
    if (!membership.isHeld) return false;
    return Math.min(...(await store.members.unended('gateway'))) === membership.fence;
  };
}

function workflowReader({ peers, keys }: Resources) {
  const client = createClient({ url: () => peers.urlOf('workflow'), peer: 'workflow service' });
  const options = () => ({
    headers: serviceHeaders(keys.internalSecret, {
      hostId: 'gateway:alerts',
      namespaceId: OPERATOR_NAMESPACE,
    }),
    timeoutMs: FACTS_TIMEOUT_MS,
  });
  const isKnown = () => peers.known().workflow !== undefined;
  return {
    facts: async (after: number, limit: number) =>
      isKnown() ? (await client.call(readRunFacts, { body: { after, limit } }, options())).facts : undefined,
    async approvals(before: number, limit: number, tenantId?: string) {
      if (!isKnown()) return undefined;
      const body = { before: Math.max(0, before), limit, ...(tenantId === undefined ? {} : { tenantId }) };
      return (await client.call(readWaitingApprovals, { body }, options())).approvals;
    },
  };
}

const expiringConnection = ({ namespaceId, name, problem, at }: TroubledConnection): ExpiringSecret => ({
  ...{ namespaceId, name, isConnection: true, expiresAt: problem === 'failed' ? null : at },
  failure: problem === 'failed' ? 'Its tokens can no longer be refreshed. Authorize it again.' : null,
});

function conditionsOf(
  { dataDir, env, random, clock }: Resources,
  { store, health, backlog }: AlertServicesDeps,
  approvals: ReturnType<typeof workflowReader>['approvals'],
): Condition[] {
  const secrets = async (before: number, limit: number, of?: string): Promise<ExpiringSecret[]> => {
    const [expiring, troubled] = await Promise.all([
      store.vault.expiring(before, limit, of),
      health.troubled(before - clock.now()),
    ]);
    return [
      ...expiring.map(({ namespaceId, name, expiresAt }) => ({
        ...{ namespaceId, name, expiresAt, isConnection: false, failure: null },
      })),
      ...troubled.filter(({ namespaceId }) => (of ?? namespaceId) === namespaceId).map(expiringConnection),
    ];
  };
  return [
    queueDepth(store.queues, backlog),
    lowDisk(dataDir, instanceId(dataDir, env, random)),
    waitingApprovals(approvals),
    expiringSecrets(secrets),
    expiringCertificates(),
  ];
}
