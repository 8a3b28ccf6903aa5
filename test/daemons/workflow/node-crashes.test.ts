import { describe, expect, test } from 'vitest';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { type Node, type Nodes, openNodes, until, untilHeld } from './support/nodes.ts';

/** Two nodes, and a run of `a` whose step is never answered. */
async function startHeld(): Promise<{ nodes: Nodes; live: Map<string, Node>; id: string }> {
  const nodes = await openNodes();
  nodes.ledger.answer('held', () => {});
  const a = await nodes.start('a');
  const id = await a.start({
    steps: [
      { uses: 'http', idempotent: true, timeoutMs: 300_000, with: { url: `${nodes.ledger.url}/held` } },
    ],
  });
  await expect.poll(() => nodes.ledger.count('held'), { timeout: 30_000 }).toBe(1);
  await untilHeld(nodes, id, 'a');
  // Any node can claim a run, so the other node starts once the run is held.
  const b = await nodes.start('b');
  return { nodes, live: new Map([a, b].map((node) => [node.name, node])), id };
}

async function countsOf({ database }: Nodes, id: string): Promise<{ crashes: number; kills: number }> {
  const { rows } = await database.query('select crashes, kills from svc.run where id = $1', [id]);
  return rows[0];
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'crashes of nodes' : POSTGRES_MISSING, () => {
  test('a run fails at its third crash, whichever nodes it crashes', async () => {
    const { nodes, live, id } = await startHeld();
    for (let crash = 1; crash <= 3; crash++) {
      await expect.poll(() => nodes.ledger.count('held'), { timeout: 30_000 }).toBe(crash);
      const name = (await nodes.holderOf(id))!;
      await live.get(name)!.kill('SIGABRT');
      live.set(name, await nodes.start(name));
    }
    await until(live.get('a')!, id, 'failed');
    expect((await live.get('a')!.run(id)).error).toMatchObject({ details: { reason: 'poison' } });
    expect(await countsOf(nodes, id)).toEqual({ crashes: 3, kills: 0 });
  }, 120_000);

  test('a crash counts also if the run continues on another node before its node is back', async () => {
    const { nodes, live, id } = await startHeld();
    await live.get('a')!.kill('SIGABRT');
    await untilHeld(nodes, id, 'b');
    expect(await countsOf(nodes, id)).toEqual({ crashes: 0, kills: 1 });
    live.set('a', await nodes.start('a'));
    expect(await countsOf(nodes, id)).toEqual({ crashes: 1, kills: 0 });
    for (const [name, other] of [
      ['b', 'a'],
      ['a', 'b'],
    ] as const) {
      await untilHeld(nodes, id, name);
      await live.get(name)!.kill('SIGABRT');
      if (name === 'b') await untilHeld(nodes, id, other);
      live.set(name, await nodes.start(name));
    }
    await until(live.get('b')!, id, 'failed');
  }, 120_000);

  test('a process that was paused past its lease counts as a kill, although it exits with an error', async () => {
    const { nodes, live, id } = await startHeld();
    const a = live.get('a')!;
    a.pause();
    await untilHeld(nodes, id, 'b');
    a.resume();
    expect(await a.hadFault()).toBe(true);
    await nodes.start('a');
    expect(await countsOf(nodes, id)).toEqual({ crashes: 0, kills: 1 });
  }, 120_000);
});
