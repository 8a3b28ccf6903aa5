import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  beginCodeReplay,
  cancelRun,
  decideApproval,
  listRunEvents,
  listRuns,
  rerunRun,
  sendSignal,
  startRun,
} from '../../../src/contracts/index.ts';
import { LEASE_MS } from '../../../src/daemons/membership/membership.ts';
import type { ReplayCalls } from '../../../src/daemons/workflow/domain/code/replays.ts';
import { atEnd } from '../../support/at-end.ts';
import { migrateDatabase } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS, PostgresServer } from '../../support/postgres.ts';
import { type Node, type Nodes, openNodes, until, untilHeld } from './support/nodes.ts';
import { asDefinition, startWorkflow } from './support/workflow.ts';

const call = (nodes: Nodes, name: string, more: object = {}) => ({
  ...{ id: name, uses: 'http', idempotent: true },
  with: { url: `${nodes.ledger.url}/${name}` },
  ...more,
});

/**
 * Starts a run whose first step waits for the ledger's answer. Any node may claim the run, so this returns the node
 * that holds it and the other node.
 */
async function startHeld(
  nodes: Nodes,
  both: readonly [Node, Node],
  more: Record<string, unknown> = {},
): Promise<{ id: string; holder: Node; other: Node }> {
  const before = nodes.ledger.count('held');
  const id = await both[0].start({ steps: [call(nodes, 'held'), call(nodes, 'after')], ...more });
  await expect.poll(() => nodes.ledger.count('held'), { timeout: 20_000 }).toBeGreaterThan(before);
  const holderOf = () => nodes.holderOf(id);
  await expect.poll(holderOf, { timeout: 20_000 }).toBeDefined();
  const [holder, other] = (await holderOf()) === both[0].name ? both : both.toReversed();
  return { id, holder: holder!, other: other! };
}

const events = async (node: Node, runId: string) =>
  (await node.call(listRunEvents, { params: { runId: runId as never }, query: { limit: 1000 } })).items.map(
    ({ type }) => type,
  );

/** The ledger answers the first call of `held` never, and later ones at once. */
function holdFirst({ ledger }: Nodes): void {
  ledger.answer('held', (_, response, nth) => {
    if (nth > 1) response.end('{}');
  });
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'nodes' : POSTGRES_MISSING, () => {
  test('runs of a killed process continue on another node after its lease', async () => {
    const nodes = await openNodes();
    const both = [await nodes.start('a'), await nodes.start('b')] as const;
    holdFirst(nodes);
    const { id, holder, other } = await startHeld(nodes, both);
    await holder.kill();
    await until(other, id, 'succeeded');
    expect([nodes.ledger.count('held'), nodes.ledger.count('after')]).toEqual([2, 1]);
    expect(await events(other, id)).toContain('run.resumed');
  });

  test('runs of a restarted process continue at once, without waiting for its lease', async () => {
    const nodes = await openNodes();
    const both = [await nodes.start('a'), await nodes.start('b')] as const;
    holdFirst(nodes);
    const { id, holder, other } = await startHeld(nodes, both);
    await holder.kill();
    await nodes.start(holder.name);
    const { rows } = await nodes.database.query(
      'select count(*)::int as ended from svc.boot where instance = $1 and ended_at is not null',
      [holder.name],
    );
    expect(rows).toEqual([{ ended: 1 }]);
    await until(other, id, 'succeeded');
  });

  test('a process that was paused past its lease writes nothing more and starts no step', async () => {
    const nodes = await openNodes();
    const both = [await nodes.start('a'), await nodes.start('b')] as const;
    const answers: Array<() => void> = [];
    nodes.ledger.answer('held', (_, response, nth) => {
      if (nth > 1) response.end('{}');
      else answers.push(() => response.end('{}'));
    });
    const { id, holder, other } = await startHeld(nodes, both);
    holder.pause();
    await until(other, id, 'succeeded');
    const before = await other.steps(id);
    // The answer for which the paused process waits arrives after the takeover.
    for (const answer of answers) answer();
    holder.resume();
    await expect.poll(holder.log, { timeout: 10_000 }).toContain('LEASE_LOST');
    await expect.poll(() => holder.hadFault().then(() => true), { timeout: 15_000 }).toBe(true);
    expect(await other.steps(id)).toEqual(before);
    expect([nodes.ledger.count('held'), nodes.ledger.count('after')]).toEqual([2, 1]);
  });

  test('a run that another node executes is cancelled, also during its clean-up steps', async () => {
    const nodes = await openNodes();
    const both = [await nodes.start('a'), await nodes.start('b')] as const;
    nodes.ledger.answer('held', () => {});
    const plain = await startHeld(nodes, both);
    const params = { runId: plain.id as never };
    expect(await plain.other.call(cancelRun, { params })).toMatchObject({ cancelled: true });
    await until(plain.other, plain.id, 'cancelled');
    const cleaning = await startHeld(nodes, both, {
      steps: [call(nodes, 'held'), call(nodes, 'undo', { if: 'cancelled()' })],
    });
    await cleaning.other.call(cancelRun, { params: { runId: cleaning.id as never } });
    await until(cleaning.holder, cleaning.id, 'cancelled');
    expect([nodes.ledger.count('after'), nodes.ledger.count('undo')]).toEqual([0, 1]);
    const again = plain.other.call(cancelRun, { params });
    await expect(again).rejects.toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
  });

  test('a signal and an approval reach a run while another node executes it', async () => {
    const nodes = await openNodes();
    const both = [await nodes.start('a'), await nodes.start('b')] as const;
    nodes.ledger.answer('held', () => {});
    const { id, holder, other } = await startHeld(nodes, both, {
      steps: undefined,
      jobs: {
        busy: { steps: [call(nodes, 'held')] },
        told: { steps: [{ id: 's', uses: 'signal', with: { name: 'go' } }, call(nodes, 'signalled')] },
        asked: { steps: [{ id: 'ok', uses: 'approval' }, call(nodes, 'approved')] },
      },
    });
    const params = { runId: id as never };
    await other.call(sendSignal, { params: { ...params, name: 'go' }, body: { payload: 1 } } as never);
    await expect.poll(() => nodes.ledger.count('signalled'), { timeout: 5000 }).toBe(1);
    const approval = { params: { ...params, stepId: 'asked.ok' }, body: { approved: true } };
    await other.call(decideApproval, approval as never);
    await expect.poll(() => nodes.ledger.count('approved'), { timeout: 5000 }).toBe(1);
    expect(await nodes.holderOf(id)).toBe(holder.name);
  });

  test('no signal is lost between two nodes, whatever moment it meets', async () => {
    const nodes = await openNodes();
    const [a, b] = [await nodes.start('a'), await nodes.start('b')];
    const signals = 20;
    const steps = Array.from({ length: signals }, (_, n) => ({
      ...{ id: `s${n}`, uses: 'signal' },
      with: { name: 'go' },
    }));
    const ids = await Promise.all(Array.from({ length: 5 }, () => a.start({ steps })));
    for (let n = 0; n < signals; n++)
      await Promise.all(
        ids.map((runId, i) =>
          [a, b][(n + i) % 2]!.call(sendSignal, {
            params: { runId: runId as never, name: 'go' },
            body: { payload: n },
          } as never),
        ),
      );
    for (const id of ids) await until(a, id, 'succeeded');
  });

  test('a run whose claim was committed without a reply to its node continues', async () => {
    const nodes = await openNodes();
    const a = await nodes.start('a');
    const id = await a.start({ steps: [{ id: 's', uses: 'signal', with: { name: 'go' } }] });
    await until(a, id, 'waiting');
    await nodes.database.query('update svc.run set wake_at = 1, fence = (select max(fence) from svc.boot)');
    await a.call(sendSignal, { params: { runId: id, name: 'go' }, body: { payload: 1 } } as never);
    await until(a, id, 'succeeded');
  });

  test('a run is run again by a node that did not execute it', async () => {
    const nodes = await openNodes();
    const [a, b] = [await nodes.start('a'), await nodes.start('b')];
    nodes.ledger.answer('flaky', (_, response, nth) => {
      response.writeHead(nth === 1 ? 400 : 200).end('{}');
    });
    const id = await a.start({ steps: [call(nodes, 'first'), call(nodes, 'flaky')] });
    await until(a, id, 'failed');
    const again = await b.call(rerunRun, {
      params: { runId: id as never },
      body: { fromStep: 'main.flaky' },
    } as never);
    await until(b, again.run.id, 'succeeded');
    expect([nodes.ledger.count('first'), nodes.ledger.count('flaky')]).toEqual([1, 2]);
  });

  test('a concurrency key holds over three nodes, also when one of them is killed', async () => {
    const nodes = await openNodes();
    const three = [await nodes.start('a'), await nodes.start('b'), await nodes.start('c')];
    nodes.ledger.answer('work', (_, response) => void setTimeout(20).then(() => response.end('{}')));
    const definition = { steps: [call(nodes, 'work')], concurrency: { key: 'k', limit: 2 } };
    const ids = await Promise.all(
      Array.from({ length: 60 }, (_, n) => three[n % 3]!.start({ ...definition })),
    );
    await expect.poll(() => nodes.ledger.count('work')).toBeGreaterThan(10);
    await three[0]!.kill();
    for (const id of ids) await until(three[1]!, id, 'succeeded');
    const { rows } = await nodes.database.query(`
      select max(held)::int as most from (
        select count(*) over (order by at, delta rows unbounded preceding) as n,
          sum(delta) over (order by at, delta rows unbounded preceding) as held
        from (
          select started_at as at, 1 as delta from svc.run union all select finished_at, -1 from svc.run
        ) as changes
      ) as counts`);
    expect(rows[0].most).toBeLessThanOrEqual(2);
    expect(nodes.ledger.mostOpen).toBeLessThanOrEqual(2 + 2);
  });

  test('one idempotency key starts one run, however many nodes are called at once', async () => {
    const nodes = await openNodes();
    const three = [await nodes.start('a'), await nodes.start('b'), await nodes.start('c')];
    const definition = asDefinition({ steps: [call(nodes, 'once')] });
    for (let key = 0; key < 5; key++) {
      const replies = await Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          three[n % 3]!.call(startRun, { body: { definition, idempotencyKey: `key ${key}` } } as never),
        ),
      );
      expect(new Set(replies.map(({ run }) => run.id)).size).toBe(1);
    }
    await expect.poll(() => nodes.ledger.count('once')).toBe(5);
    expect((await three[0]!.call(listRuns)).items).toHaveLength(5);
  });

  test('quotas are exact when the nodes are called at once', async () => {
    const tenants = { default: { concurrentRuns: 7 } };
    const nodes = await openNodes({ config: { tenants } });
    const three = [await nodes.start('a'), await nodes.start('b'), await nodes.start('c')];
    nodes.ledger.answer('held', () => {});
    const definition = { steps: [call(nodes, 'held')] };
    const starts = await Promise.allSettled(
      Array.from({ length: 30 }, (_, n) => three[n % 3]!.start({ ...definition })),
    );
    expect(starts.filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
  });

  test('a schedule starts one run for each planned time, however many nodes serve it', async () => {
    const schedule = [{ id: 'tick', cron: '* * * * * *', catchUp: 'all', overlap: 'allow' }];
    const definition = {
      ...{ id: 'ticking', on: { schedule } },
      jobs: { main: { steps: [{ uses: 'set' }] } },
    };
    const nodes = await openNodes({
      config: { workflows: ['*.workflow.json'] },
      files: { 'ticking.workflow.json': JSON.stringify(definition) },
    });
    for (const name of ['a', 'b', 'c']) await nodes.start(name);
    const slots = async () => {
      const { rows } = await nodes.database.query(
        "select split_part(key, ' ', 3)::bigint as slot from svc.idempotency_key order by slot",
      );
      return rows.map(({ slot }) => Number(slot));
    };
    await expect.poll(async () => (await slots()).length, { timeout: 30_000 }).toBeGreaterThan(8);
    const found = await slots();
    const [first] = found;
    expect(found).toEqual(found.map((_, n) => first! + n * 1000));
    const { rows } = await nodes.database.query('select count(*)::int, count(distinct id)::int from svc.run');
    expect(rows[0].count).toBeLessThanOrEqual((await slots()).length);
  });

  test('runs stay with their nodes while PostgreSQL is away for longer than a lease', async () => {
    const server = await PostgresServer.start({ durable: true });
    atEnd(() => server.remove());
    await migrateDatabase(server.url());
    const nodes = await openNodes({ url: server.url() });
    const both = [await nodes.start('a'), await nodes.start('b')] as const;
    const answers: Array<() => void> = [];
    nodes.ledger.answer('held', (_, response) => void answers.push(() => response.end('{}')));
    const { id, holder, other } = await startHeld(nodes, both);
    const ids = [id];
    ids.push(await other.start({ steps: [call(nodes, 'held')] }));
    await expect.poll(() => nodes.ledger.count('held')).toBe(2);
    await server.stop('immediate');
    await setTimeout(LEASE_MS + 2000);
    await server.up();
    for (const answer of answers) answer();
    for (const id of ids) await until(holder, id, 'succeeded');
    for (const id of ids) expect(await events(holder, id)).not.toContain('run.interrupted');
    expect(nodes.ledger.count('held')).toBe(2);
  });

  test('a function on a remote host may request its steps from any node', async () => {
    const nodes = await openNodes();
    nodes.ledger.answer('held', () => {});
    // In this process, so that the test can open a replay.
    const a = await startWorkflow({
      config: nodes.config,
      env: { SVC_INSTANCE: 'a', SVC_ADVERTISE_URL: 'http://127.0.0.1:4000' },
    });
    const runId = await a.start({ steps: [call(nodes, 'held')] });
    await untilHeld(nodes, runId, 'a');
    const b = await nodes.start('b');
    let begun = 0;
    const calls = { begin: async () => void begun++ } as Partial<ReplayCalls> as ReplayCalls;
    a.services.replays.open(runId, 'token', calls);
    const begin = (token: string) => b.call(beginCodeReplay, { body: { runId, token } });
    expect(await begin('token')).toEqual({ begun: true });
    await expect(begin('wrong')).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(begun).toBe(1);
  });

  test('a node with free slots takes the runs for which the node that started them has none', async () => {
    const nodes = await openNodes({ config: { workflow: { maxRunningRuns: 2 } } });
    const [a] = [await nodes.start('a'), await nodes.start('b')];
    nodes.ledger.answer('held', () => {});
    const ids = await Promise.all([1, 2, 3, 4].map(() => a!.start({ steps: [call(nodes, 'held')] })));
    const holders = async () => (await Promise.all(ids.map((id) => nodes.holderOf(id)))).toSorted();
    await expect.poll(holders, { timeout: 10_000 }).toEqual(['a', 'a', 'b', 'b']);
  });
});
