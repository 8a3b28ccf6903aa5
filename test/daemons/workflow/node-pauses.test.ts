import { describe, expect, test } from 'vitest';
import { pauseRun, resumeRun, sendSignal } from '../../../src/contracts/index.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { type Node, type Nodes, openNodes, until } from './support/nodes.ts';
import { runAnother } from './support/run-another.ts';

const POLL = { timeout: 30_000, interval: 20 };
const params = (runId: string) => ({ params: { runId: runId as never } });
const call = ({ ledger }: Nodes, name: string) => ({
  ...{ id: name, uses: 'http', idempotent: true, with: { url: `${ledger.url}/${name}` } },
});

/** Sends the signal of the run, then waits for a new run, so that the nodes have had the time to begin a step. */
async function signalInVain(node: Node, id: string): Promise<void> {
  const to = { params: { runId: id as never, name: 'go' } };
  await node.call(sendSignal, { ...to, body: { payload: 1 } as never });
  await runAnother(node);
}

/** Starts a run on two nodes whose steps `held` and `after` follow each other. The ledger answers `held` on `release`. */
async function startHeld() {
  const nodes = await openNodes();
  const answers: Array<() => void> = [];
  nodes.ledger.answer('held', (_, response) => void answers.push(() => response.end('{}')));
  const both: [Node, Node] = [await nodes.start('a'), await nodes.start('b')];
  const id = await both[0].start({
    jobs: {
      held: { steps: [call(nodes, 'held'), call(nodes, 'after')] },
      beside: { steps: [{ id: 'go', uses: 'signal', with: { name: 'go' } }, call(nodes, 'beside')] },
    },
  });
  await expect.poll(() => answers.length, POLL).toBe(1);
  await expect.poll(() => nodes.holderOf(id), POLL).toBeDefined();
  const isFirst = (await nodes.holderOf(id)) === both[0].name;
  const [holder, other] = isFirst ? both : both.toReversed();
  const counts = () => ['held', 'after', 'beside'].map((name) => nodes.ledger.count(name));
  return { nodes, id, holder: holder!, other: other!, counts, release: () => answers.at(-1)!() };
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'a paused run' : POSTGRES_MISSING, () => {
  test('is drained by the node that executes it, and continues on any node', async () => {
    const { nodes, id, other, counts, release } = await startHeld();
    expect((await other.call(pauseRun, params(id))).run.pauseScope).toBe('run');
    release();
    await expect.poll(() => other.run(id), POLL).toMatchObject({ status: 'waiting', pauseScope: 'run' });
    expect(await nodes.holderOf(id)).toBeUndefined();
    await signalInVain(other, id);
    expect(counts()).toEqual([1, 0, 0]);
    await other.call(resumeRun, params(id));
    await until(other, id, 'succeeded');
    expect(counts()).toEqual([1, 1, 1]);
  });

  test('begins its next steps on the node that still drains it when another node resumes it', async () => {
    const { nodes, id, holder, other, counts, release } = await startHeld();
    await other.call(pauseRun, params(id));
    await signalInVain(other, id);
    expect(counts()).toEqual([1, 0, 0]);
    await other.call(resumeRun, params(id));
    await expect.poll(counts, POLL).toEqual([1, 0, 1]);
    expect(await nodes.holderOf(id)).toBe(holder.name);
    release();
    await until(other, id, 'succeeded');
    expect(counts()).toEqual([1, 1, 1]);
  });

  test('stays paused when its node is killed, and continues on another node once it is resumed', async () => {
    const { nodes, id, holder, other, counts, release } = await startHeld();
    await other.call(pauseRun, params(id));
    await signalInVain(other, id);
    await holder.kill();
    // The other node takes over the run after the lease of the killed node.
    await expect.poll(() => other.run(id), POLL).toMatchObject({ status: 'queued', pauseScope: 'run' });
    await runAnother(other);
    expect(counts()).toEqual([1, 0, 0]);
    expect(await nodes.holderOf(id)).toBeUndefined();
    await other.call(resumeRun, params(id));
    await expect.poll(() => nodes.ledger.count('held'), POLL).toBe(2);
    release();
    await until(other, id, 'succeeded');
    expect(counts()).toEqual([2, 1, 1]);
  });
});
