import { expect, test } from 'vitest';
import { CODE_STEP, getRun, type WorkflowRun } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { below, type Random } from '../../support/random.ts';
import { writeCodePlugin } from './support/code.ts';
import { startLedger } from './support/ledger.ts';
import { PLAYER, type Plan } from './support/plan-player.ts';
import { PLAY_MS, playRandom, playUnderDeaths, REPEATABLE, SEED } from './support/played-runs.ts';
import type { RetryingClient } from './support/retrying-client.ts';

const RUNS = 8;

function planOf(random: Random, depth: number): Plan {
  const under = (limit: number): number => below(random, limit);
  return Array.from({ length: 1 + under(depth === 0 ? 2 : 3) }, (): Plan[number] => {
    const kinds: Array<Plan[number]['do']> = ['step', 'step', 'sleep', 'signal', 'child'];
    if (depth > 0) kinds.push('all', 'race', 'all');
    const kind = kinds[under(kinds.length)]!;
    if (kind === 'signal') return { do: kind, name: `s${under(2)}` };
    if (kind === 'all' || kind === 'race')
      return { do: kind, of: Array.from({ length: 2 + under(3) }, () => planOf(random, depth - 1)) };
    return { do: kind, ms: under(kind === 'step' ? 60 : 300) };
  });
}

/** Sends each waiting step of the runs the signal that it waits for. */
async function sendSignals(client: RetryingClient, runs: readonly WorkflowRun[]): Promise<void> {
  for (const { id } of runs) {
    const waiting = (await client.steps(id)).flatMap(({ waitingFor }) => waitingFor ?? []);
    for (const { for: what, name } of waiting)
      if (what === 'signal') await client.signal(id, { name: name! });
  }
}

test(
  `random functions with branches, races, children and signals replay identically under random kills (seed ${SEED})`,
  async () => {
    const random = playRandom();
    const plans = Array.from(
      { length: RUNS },
      (): Plan => [
        { do: 'all', of: [planOf(random, 2), planOf(random, 1), planOf(random, 1)] },
        ...planOf(random, 1),
      ],
    );
    const dataDir = await tempDir();
    await writeCodePlugin(dataDir, PLAYER, { permissions: { platform: { workflows: true } } });
    const { client, ids } = await playUnderDeaths({
      ...{ name: 'replay', dataDir, random, workflowId: 'play' },
      inputs: plans.map((plan) => ({ plan })),
      meanwhile: sendSignals,
    });
    for (const [index, runId] of ids.entries()) {
      const run = await client.call(getRun, { params: { runId } });
      const which = `seed ${SEED}, plan ${JSON.stringify(plans[index])}`;
      expect(run.error, which).toBeNull();
      const trace = run.output as string[];
      for (const { uses, output } of await client.steps(runId)) {
        if (uses !== CODE_STEP) continue;
        // What the function had seen then is what it saw at the end.
        expect(output, which).toEqual(trace.slice(0, (output as string[]).length));
      }
    }
  },
  PLAY_MS,
);

test(
  `a saga that reserves in parallel and compensates ends under random kills (seed ${SEED})`,
  async () => {
    const random = playRandom();
    const ledger = await startLedger();
    const dataDir = await tempDir();
    const source = `
      const note = (ctx, name, key) => ctx.fetch('${ledger.url}/' + name, { method: 'POST', headers: { 'idempotency-key': key } });
      export const saga = defineWorkflow({
        id: 'saga',
        steps: ${REPEATABLE},
        run: async (ctx, { items, fails }) => {
          const undo = [];
          const once = (name) => ctx.step(name, async ({ idempotencyKey }) => { await note(ctx, name, idempotencyKey); });
          try {
            await ctx.all(items.map(({ name, ms }) => async () => {
              await ctx.step('price', () => new Promise((done) => setTimeout(done, ms)));
              await once('reserve-' + name);
              undo.push(name);
            }));
            if (fails) throw new Error('declined');
            await once('charge');
          } catch {
            for (const name of undo.toReversed()) {
              await once('undo-' + name);
              await ctx.sleep(20);
            }
          }
          return undo;
        },
      });`;
    await writeCodePlugin(dataDir, source, { permissions: { network: [new URL(ledger.url).host] } });
    const inputs = Array.from({ length: RUNS }, (_, run) => ({
      items: Array.from({ length: 5 }, (_unused, item) => ({ name: `${item}`, ms: random() * 300 })),
      fails: run % 4 !== 0,
    }));
    const played = { name: 'saga', dataDir, random, workflowId: 'saga', inputs };
    const { client, ids } = await playUnderDeaths(played);
    for (const [index, runId] of ids.entries()) {
      const run = await client.call(getRun, { params: { runId } });
      expect(run.error, `seed ${SEED}`).toBeNull();
      const undone = inputs[index]!.fails ? (run.output as string[]).toReversed() : [];
      expect((run.output as string[]).toSorted()).toEqual(['0', '1', '2', '3', '4']);
      const noted = ledger.namesOf(runId);
      const undoing = noted.filter((name) => name.startsWith('undo-'));
      expect(undoing, `seed ${SEED}`).toEqual(undone.map((name) => `undo-${name}`));
      expect(noted.includes('charge')).toBe(!inputs[index]!.fails);
    }
  },
  PLAY_MS,
);
