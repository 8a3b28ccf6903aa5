import pg from 'pg';
import { describe, expect, test } from 'vitest';
import {
  beginCodeReplay,
  cancelRun,
  decideApproval,
  memberPath,
  readRunNotices,
  rerunRun,
  sendSignal,
  startRun,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import type { ReplayCalls } from '../../../src/daemons/workflow/domain/code/replays.ts';
import { serviceKey } from '../../../src/kit/security/keys.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { atEnd } from '../../support/at-end.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { type Ledger, startLedger } from './support/ledger.ts';
import { asDefinition, startWorkflow, type TestWorkflow } from './support/workflow.ts';

/** A node whose workflow service listens on loopback. Its clock stands still, so nothing is polled. */
interface Node {
  workflow: TestWorkflow;
  gateway: TestGateway;
}

interface Cluster {
  a: Node;
  b: Node;
  ledger: Ledger;
  /** The fence token of a node's workflow service among the members. */
  memberOf(instance: string): Promise<number>;
}

/** Starts nodes `a` and `b` on one PostgreSQL. Neither advertises an address on loopback. */
async function openCluster({ drainMs = 500 } = {}): Promise<Cluster> {
  const url = await migratedPostgres();
  const ledger = await startLedger();
  ledger.answer('held', () => {});
  const database = new pg.Client(url);
  await database.connect();
  atEnd(() => database.end());
  const config = { store: { url }, workflow: { httpAllow: ['127.0.0.1'], drainMs } };
  const start = async (instance: string): Promise<Node> => {
    const env = { SVC_INSTANCE: instance };
    const workflow = await startWorkflow({ config, env });
    const gateway = await startGateway({ config, env, peers: createPeers({ workflow: workflow.url }) });
    return { workflow, gateway };
  };
  const [a, b] = [await start('a'), await start('b')];
  const members = async () => {
    const { rows } = await database.query('select kind, instance, fence::int, url from svc.member');
    return rows as Array<{ kind: string; instance: string; fence: number; url: string | null }>;
  };
  await expect.poll(async () => (await members()).filter((member) => member.url !== null)).toHaveLength(4);
  // Leases end by the clock of the database, and clocks that stand still renew none.
  await database.query('update svc.member set lease_until = lease_until + 3600000');
  return {
    ...{ a, b, ledger },
    memberOf: async (instance) =>
      (await members()).find((member) => member.kind === 'workflow' && member.instance === instance)!.fence,
  };
}

const call = ({ ledger }: Cluster, name: string, more: object = {}) => ({
  ...{ id: name, uses: 'http', idempotent: true },
  with: { url: `${ledger.url}/${name}` },
  ...more,
});

/** Starts a run on node `a`, which waits there for the ledger's answer. */
async function startHeld(cluster: Cluster, more: Record<string, unknown> = {}): Promise<string> {
  const before = cluster.ledger.count('held');
  const id = await cluster.a.workflow.start({ steps: [call(cluster, 'held')], ...more });
  await expect.poll(() => cluster.ledger.count('held')).toBeGreaterThan(before);
  return id;
}

const cancel = ({ workflow }: Node, runId: string) =>
  workflow.call(cancelRun, { params: { runId: runId as never } });

const signal = ({ workflow }: Node, runId: string) =>
  workflow.call(sendSignal, { params: { runId, name: 'go' }, body: { payload: 1 } } as never);

/** Opens a replay of the run at its owner. Returns how often the function has begun. */
function openReplay({ workflow }: Node, runId: string): () => number {
  let begun = 0;
  const calls = { begin: async () => void begun++ } as Partial<ReplayCalls> as ReplayCalls;
  workflow.services.replays.open(runId, 'token', calls);
  return () => begun;
}

const begin = ({ workflow }: Node, runId: string, token = 'token') =>
  workflow.call(beginCodeReplay, { body: { runId, token } });

const WAITS_FOR_SIGNAL = (cluster: Cluster) => ({
  steps: undefined,
  jobs: {
    busy: { steps: [call(cluster, 'held')] },
    told: { steps: [{ id: 's', uses: 'signal', with: { name: 'go' } }, call(cluster, 'signalled')] },
    asked: { steps: [{ id: 'ok', uses: 'approval' }, call(cluster, 'approved')] },
  },
});

const SLOW = 60_000;

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'owners on loopback' : POSTGRES_MISSING, () => {
  test(
    'a run is cancelled by another node without a poll of its owner',
    async () => {
      const cluster = await openCluster();
      const { a, b } = cluster;
      const id = await startHeld(cluster);
      expect(await cancel(b, id)).toMatchObject({ cancelled: true });
      await a.workflow.until(id, 'cancelled');
    },
    SLOW,
  );

  test(
    'a signal and an approval reach the owner without a poll, and need its gateway for that',
    async () => {
      const cluster = await openCluster();
      const { a, b, ledger } = cluster;
      const id = await startHeld(cluster, WAITS_FOR_SIGNAL(cluster));
      await signal(b, id);
      await expect.poll(() => ledger.count('signalled')).toBe(1);
      await b.workflow.call(decideApproval, {
        params: { runId: id, stepId: 'asked.ok' },
        body: { approved: true },
      } as never);
      await expect.poll(() => ledger.count('approved')).toBe(1);

      const other = await startHeld(cluster, WAITS_FOR_SIGNAL(cluster));
      await a.gateway.close();
      await signal(b, other);
      await expect(begin(b, other)).rejects.toMatchObject({ code: 'CONFLICT' });
      expect(ledger.count('signalled')).toBe(1);
      a.workflow.clock.advance(seconds(1));
      await expect.poll(() => ledger.count('signalled')).toBe(2);
    },
    SLOW,
  );

  test(
    'a rerun on another node ends the run that holds its concurrency key without a poll',
    async () => {
      const cluster = await openCluster();
      const { a, b, ledger } = cluster;
      ledger.answer('first', (_, response, nth) => {
        if (nth !== 2) response.writeHead(nth === 1 ? 400 : 200).end('{}');
      });
      const definition = asDefinition({
        steps: [call(cluster, 'first')],
        concurrency: { key: 'k', strategy: 'cancel-running' },
      });
      const start = () => a.workflow.call(startRun, { body: { definition } } as never);
      const { run: failed } = await start();
      await a.workflow.until(failed.id, 'failed');
      const { run: holder } = await start();
      await expect.poll(() => ledger.count('first')).toBe(2);
      const { run } = await b.workflow.call(rerunRun, { params: { runId: failed.id }, body: {} } as never);
      await b.workflow.until(run.id, 'succeeded');
      await a.workflow.until(holder.id, 'cancelled');
    },
    SLOW,
  );

  test(
    'a step call that arrives at another node reaches the owner through its gateway',
    async () => {
      const cluster = await openCluster();
      const { a, b } = cluster;
      const id = await startHeld(cluster);
      const begun = openReplay(a, id);
      expect(await begin(b, id)).toEqual({ begun: true });
      await expect(begin(b, id, 'wrong')).rejects.toMatchObject({ code: 'CONFLICT' });
      expect(begun()).toBe(1);
    },
    SLOW,
  );

  test(
    'an owner that is stopping still answers step calls and cancels its runs',
    async () => {
      const cluster = await openCluster({ drainMs: 60_000 });
      const { a, b } = cluster;
      const id = await startHeld(cluster);
      const begun = openReplay(a, id);
      a.workflow.becomeUnready();
      const closed = a.workflow.close();
      await expect.poll(() => begin(b, id)).toEqual({ begun: true });
      expect(begun()).toBeGreaterThan(0);
      expect(await cancel(b, id)).toMatchObject({ cancelled: true });
      await closed;
      expect((await b.workflow.run(id)).status).toBe('cancelled');
    },
    SLOW,
  );

  test(
    'an owner that is stopping reads its notices also without a call',
    async () => {
      const cluster = await openCluster({ drainMs: 60_000 });
      const { a, b } = cluster;
      const id = await startHeld(cluster);
      await a.gateway.close();
      const closed = a.workflow.close();
      const cancelled = cancel(b, id);
      const left = closed.then(() => true);
      const advance = async () => {
        a.workflow.clock.advance(seconds(1));
        return Promise.race([left, new Promise<false>((resolve) => setImmediate(() => resolve(false)))]);
      };
      await expect.poll(advance, { timeout: 20_000 }).toBe(true);
      b.workflow.clock.advance(seconds(1));
      expect(await cancelled).toMatchObject({ cancelled: true });
    },
    SLOW,
  );

  test(
    'gateways pass calls on only for services that know the keys, to their own node, and only known paths',
    async () => {
      const cluster = await openCluster();
      const { a, b } = cluster;
      const fence = await cluster.memberOf('a');
      const secret = { 'x-internal-secret': TEST_KEYS.internalSecret };
      const key = { 'x-svc-service-key': serviceKey(TEST_KEYS.internalSecret) };
      const post = async (headers: Record<string, string>, path: string = readRunNotices.path, to = a) => {
        const { status } = await to.gateway.fetch(path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify({ fence: 1 }),
        });
        return status;
      };
      const path = `${memberPath(fence)}${readRunNotices.path}`;
      const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const refused = [
        {},
        bearer,
        secret,
        key,
        { ...key, ...bearer },
        { ...secret, 'x-svc-service-key': 'no' },
      ];
      for (const headers of refused) expect(await post(headers, path)).toBe(403);
      expect(await post({ ...secret, ...key }, path)).toBe(200);
      expect(await post({ ...secret, ...key }, path, b)).toBe(404);
      for (const other of ['/api/v1/workflows/runs', '/internal/plugins/reread', '/../../metrics'])
        expect(await post({ ...secret, ...key }, `${memberPath(fence)}${other}`)).toBe(404);
      for (const headers of [bearer, { ...secret, ...key }]) expect(await post(headers)).toBe(404);
    },
    SLOW,
  );
});
