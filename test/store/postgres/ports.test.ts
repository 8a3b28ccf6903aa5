import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { type Clock, manualClock } from '../../../src/kit/time/clock.ts';
import { hours, minutes } from '../../../src/kit/time/duration.ts';
import type { GatewayStore, NewMember, StateStore } from '../../../src/store/ports/index.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { postgresGatewayStore } from '../../../src/store/postgres/gateway/store.ts';
import { PostgresMembers } from '../../../src/store/postgres/members.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { postgresStateStore } from '../../../src/store/postgres/state/store.ts';
import { PostgresVectors } from '../../../src/store/postgres/state/vectors.ts';
import { TRANSACTION_ID } from '../../../src/store/postgres/transaction-ids.ts';
import { postgresWorkflowStore } from '../../../src/store/postgres/workflow/store.ts';
import { threadedVectorIndex } from '../../../src/store/sqlite/index.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { delivery } from '../../support/new-delivery.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { describeAccessAndAudit } from '../suites/access-and-audit.ts';
import { describeAlerts } from '../suites/alerts.ts';
import { describeClients } from '../suites/clients.ts';
import { describeConnections } from '../suites/connections.ts';
import { describeDeliveryHours } from '../suites/delivery-hours.ts';
import { type OpenDriver, openFresh } from '../suites/driver.ts';
import { describeEndTasks } from '../suites/end-tasks.ts';
import { type AddUncommitted, describeFeed } from '../suites/feed.ts';
import { describeHosts } from '../suites/hosts.ts';
import { describeKeyValue } from '../suites/key-value.ts';
import { describeMembers } from '../suites/members.ts';
import { describeMessages } from '../suites/messages.ts';
import { describeObjects } from '../suites/objects.ts';
import { describePauses } from '../suites/pauses.ts';
import { describeQueues } from '../suites/queues.ts';
import { describeRecoveryFacts } from '../suites/recovery-facts.ts';
import { describeRefreshTokens } from '../suites/refresh-tokens.ts';
import { describeRefusedReplays, describeRefusedRequests } from '../suites/refused-requests.ts';
import { describeRunSearch } from '../suites/run-search.ts';
import { describeSecretApprovals } from '../suites/secret-approvals.ts';
import { describeSharedRuns } from '../suites/shared-runs.ts';
import { describeVault } from '../suites/vault.ts';
import { describeVectors } from '../suites/vectors.ts';
import { describeWebhookInbox } from '../suites/webhook-inbox.ts';
import { describeWebhookSecrets } from '../suites/webhook-secrets.ts';
import { describeWorkflow } from '../suites/workflow.ts';

/** One migrated database per data folder, as the suites expect. */
const urls = new Map<string, Promise<string>>();

async function migratedPostgres(): Promise<string> {
  const url = await emptyPostgres();
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  await migratePostgres(database);
  await database.close();
  return url;
}

/** Opens the state service's stores as one node, with a data folder of its own. */
const openState: OpenDriver<StateStore> = async ({ dataDir, clock }) => {
  const node = { dataDir: await tempDir(), clock };
  return opened((database) =>
    postgresStateStore(database, { clock, leaseClock: clock, vectorIndex: threadedVectorIndex(node) }),
  )({
    dataDir,
    clock,
  });
};

function statePart<Port>(part: (store: StateStore) => Port): OpenDriver<Port> {
  return async (options) => {
    const { port: store } = await openState(options);
    return { port: part(store), close: () => store.close() };
  };
}

function opened<Port>(open: (database: PostgresDatabase, clock: Clock) => Port): OpenDriver<Port> {
  return async ({ dataDir, clock }) => {
    if (!urls.has(dataDir)) urls.set(dataDir, migratedPostgres());
    const url = await urls.get(dataDir)!;
    const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
    return { port: open(database, clock), close: () => database.close() };
  };
}

const gateway = (database: PostgresDatabase, clock: Clock): GatewayStore =>
  postgresGatewayStore(database, { clock, logger: silentLogger, leaseClock: clock });

const gatewayPart = <Name extends keyof GatewayStore>(name: Name): OpenDriver<GatewayStore[Name]> =>
  opened((database, clock) => gateway(database, clock)[name]);

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'PostgreSQL' : POSTGRES_MISSING, () => {
  describeKeyValue('postgres cache', gatewayPart('cache'));
  describeKeyValue(
    'postgres state',
    statePart(({ entries }) => entries),
  );
  describeObjects(
    'postgres',
    statePart((store) => store.openObjects({ quotaBytes: 10_000_000, random: systemRandom() })),
  );
  describeVectors(
    'postgres',
    statePart(({ vectors }) => vectors),
  );
  describeAccessAndAudit('postgres', opened(gateway));
  describeMessages('postgres', opened(gateway));
  describeRecoveryFacts('postgres', opened(gateway));
  describeWebhookSecrets('postgres', gatewayPart('secrets'));
  describeVault('postgres', gatewayPart('vault'));
  describeRefusedRequests('postgres', gatewayPart('refusedRequests'));
  describeRefusedReplays('postgres', gatewayPart('inbox'));
  describeWebhookInbox('postgres', gatewayPart('inbox'), { shared: true });
  describeDeliveryHours('postgres', gatewayPart('inbox'));
  describeWorkflow('postgres', opened(postgresWorkflowStore));
  describeEndTasks('postgres', opened(postgresWorkflowStore));
  describePauses('postgres', opened(postgresWorkflowStore));
  describeSecretApprovals(
    'postgres',
    opened((database) => postgresWorkflowStore(database).approvals),
  );
  describeRunSearch('postgres', opened(postgresWorkflowStore));
  describeSharedRuns('postgres', opened(postgresWorkflowStore));
  describeClients('postgres', gatewayPart('clients'));
  describeQueues('postgres', gatewayPart('queues'));
  describeAlerts('postgres', gatewayPart('alerts'));
  describeConnections('postgres', gatewayPart('connections'));
  describeMembers('postgres', gatewayPart('members'));
  describeRefreshTokens('postgres', gatewayPart('refreshTokens'));
  describeHosts('postgres', opened(gateway));

  describeFeed('postgres', opened(gateway), addUncommitted);

  test('deliveries of live members stay running, and those of ended members are interrupted', async () => {
    const { port } = await openFresh(opened(gateway));
    const [live, ended] = [
      await port.members.join(member('a', 10_000)),
      await port.members.join(member('b', 10_000)),
    ];
    const claim = (key: string) => ({ key, expiresAt: 1e15 });
    const [running, orphan, unowned] = [delivery(), delivery(), delivery()];
    await port.inbox.begin(running, claim('running'), live);
    await port.inbox.begin(orphan, claim('orphan'), ended);
    await port.inbox.begin(unowned, claim('unowned'));
    await port.members.leave(ended);
    expect([await port.inbox.interrupt(), await port.inbox.interrupt()]).toEqual([2, 0]);
    expect(await port.inbox.find(running.webhookId)).toMatchObject({ status: 'running' });
    expect(await port.inbox.find(orphan.webhookId)).toMatchObject({ status: 'interrupted' });
    expect(await port.inbox.begin(delivery(), claim('running'), live)).toBe('pending');
    for (const key of ['orphan', 'unowned'])
      expect(await port.inbox.begin(delivery(), claim(key), live)).toBe('begun');
  });

  test('an end that is written again after an unconfirmed commit counts as one attempt', async () => {
    const { port } = await openFresh(opened(gateway));
    const sent = delivery();
    await port.inbox.accept(sent, undefined, 'auth=ok');
    const end = {
      status: 'retrying',
      httpStatus: 202,
      outcome: null,
      durationMs: 1,
      nextAttemptAt: 5,
    } as const;
    for (const steps of ['first', 'first', 'second'])
      await port.inbox.finish(sent.webhookId, { ...end, steps });
    expect(await port.inbox.find(sent.webhookId)).toMatchObject({
      attempts: 2,
      steps: 'auth=ok;first;second',
    });
  });

  test('leases of ctx.state follow the database clock, whatever the clock of a node says', async () => {
    const dataDir = await tempDir();
    const nodes = await Promise.all(
      [-hours(1), 0, hours(1)].map(async (skew) => {
        const clock = manualClock(Date.now() + skew);
        const { port, close } = await opened((database) =>
          postgresStateStore(database, { clock, vectorIndex: threadedVectorIndex({ dataDir, clock }) }),
        )({ dataDir, clock });
        atEnd(close);
        return port.entries;
      }),
    );
    const take = () => Promise.all(nodes.map((node, n) => node.setIfAbsent('s', 'lease', n, 800)));
    const holders = (taken: boolean[]) => taken.filter((isTaken) => isTaken).length;
    expect(holders(await take())).toBe(1);
    expect(await nodes[1]!.increment('s', 'window', { by: 1, windowMs: 60_000 })).toMatchObject({ value: 1 });
    for (const node of nodes) {
      expect(await node.get('s', 'window')).toBeDefined();
      expect(await node.sweep(10)).toBe(0);
    }
    await expect.poll(async () => (await nodes[0]!.get('s', 'lease')) === undefined).toBe(true);
    expect(await Promise.all(nodes.map((node) => node.get('s', 'lease')))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(holders(await take())).toBe(1);
  });

  test('a claim follows the database clock, whatever the clock of a node says', async () => {
    const dataDir = await tempDir();
    const ownClock = opened((database, clock) =>
      postgresGatewayStore(database, { clock, logger: silentLogger }),
    );
    const nodes = [manualClock(Date.now()), manualClock(Date.now() + hours(1))];
    const inboxes = await Promise.all(
      nodes.map(async (clock) => {
        const { port, close } = await ownClock({ dataDir, clock });
        atEnd(close);
        return port.inbox;
      }),
    );
    const begin = (node: number) => {
      const expiresAt = nodes[node]!.now() + minutes(2);
      return inboxes[node]!.begin(delivery(), { key: 'k', expiresAt });
    };
    expect(await begin(0)).toBe('begun');
    expect(await inboxes[1]!.seen('k', nodes[1]!.now())).toBe('pending');
    expect(await begin(1)).toBe('pending');
  });

  test('an index is kept over a restart, and built again for another database with the same collection', async () => {
    const node = { dataDir: await tempDir(), clock: manualClock() };
    const [first, second] = await Promise.all([migratedPostgres(), migratedPostgres()]);
    const start = (url: string) => {
      const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
      atEnd(() => database.close());
      const index = threadedVectorIndex(node);
      const applied: number[] = [];
      const apply: typeof index.apply = (key, changes) => {
        applied.push(changes.written.length);
        return index.apply(key, changes);
      };
      return { vectors: new PostgresVectors(database, { ...index, apply }), applied };
    };
    const key = { tenant: 'acme', namespace: 'plugin:x', collection: 'c' };
    const write = ({ vectors }: ReturnType<typeof start>, ids: string[]) =>
      vectors.upsert(
        key,
        ids.map((id, n) => ({ id, vector: [1, n], metadata: {} })),
        1e6,
      );
    const find = async ({ vectors }: ReturnType<typeof start>) =>
      (await vectors.search(key, { vector: [1, 0], limit: 1000, filter: {} })).map(({ id }) => id);
    const ids = Array.from({ length: 400 }, (_, n) => `k${n}`);

    const before = start(first);
    for (const batch of [0, 1, 2])
      await write(
        before,
        ids.map((id) => `${id}-${batch}`),
      );
    expect(await find(before)).toHaveLength(1000);
    await before.vectors.close();
    const after = start(first);
    await write(after, ['new']);
    expect(await find(after)).toHaveLength(1000);
    expect(after.applied).toEqual([1]);
    await after.vectors.close();

    const other = start(second);
    await write(other, ['a', 'b']);
    for (const n of [1, 2, 3]) await write(other, [`later${n}`]);
    expect((await find(other)).toSorted()).toEqual(['a', 'b', 'later1', 'later2', 'later3']);
    await other.vectors.close();
  });

  test('leases follow the database clock, whatever the clock of a node says', async () => {
    const { port } = await openFresh(opened((database) => new PostgresMembers(database)));
    const [short, long] = [await port.join(member('a', 400)), await port.join(member('b', 60_000))];
    const [first] = await port.live('gateway');
    expect(first).toMatchObject({ fence: short, leaseUntil: first!.startedAt + 400 });
    expect(Math.abs(first!.startedAt - Date.now())).toBeLessThan(60_000);
    expect(await port.endExpired('gateway', long)).toBe(0);
    await expect.poll(() => port.endExpired('gateway', long)).toBe(1);
    expect(await port.renew(short, { leaseMs: 400, url: null })).toBe(false);
    expect((await port.live('gateway')).map(({ fence }) => fence)).toEqual([long]);
  });
});

const addUncommitted: AddUncommitted = async ({ dataDir, clock }, { topic, key }) => {
  const client = new pg.Client(await urls.get(dataDir)!);
  await client.connect();
  atEnd(() => client.end());
  await client.query('begin');
  await client.query(
    `insert into svc.feed (xact, topic, key, added_at) values (${TRANSACTION_ID}, $1, $2, $3)`,
    [topic, key, clock.now()],
  );
  return {
    async commit() {
      await client.query('commit');
    },
  };
};

function member(instance: string, leaseMs: number): NewMember {
  return { kind: 'gateway', instance, version: '1.0.0', release: null, keys: null, leaseMs, isSole: false };
}
