import { expect, test } from 'vitest';
import { CODE_STEP, sendSignal } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { writeCodePlugin } from './support/code.ts';
import {
  begin,
  KILLS,
  POISON_NEVER,
  type Random,
  SEED,
  seeded,
  UNFINISHED,
  underKills,
  unfinished,
} from './support/kills.ts';
import { startLedger } from './support/ledger.ts';
import { type DaemonProcess, startProcess } from './support/process.ts';

const RUNS = 8;

type Plan = Array<
  | { do: 'step' | 'sleep' | 'child'; ms: number }
  | { do: 'signal'; name: string }
  | { do: 'all' | 'race'; of: Plan[] }
>;

function planOf(random: Random, depth: number): Plan {
  const under = (limit: number): number => Math.floor(random() * limit);
  return Array.from({ length: 1 + under(depth === 0 ? 2 : 3) }, (): Plan[number] => {
    const kinds = ['step', 'step', 'sleep', 'signal', 'child', ...(depth > 0 ? ['all', 'race', 'all'] : [])];
    const kind = kinds[under(kinds.length)]!;
    if (kind === 'signal') return { do: kind, name: `s${under(2)}` };
    if (kind === 'all' || kind === 'race')
      return { do: kind, of: Array.from({ length: 2 + under(3) }, () => planOf(random, depth - 1)) };
    return { do: kind as 'step', ms: under(kind === 'step' ? 60 : 300) };
  });
}

/** Every step is named after all that the function saw before it: a replay in another order asks for other steps. */
const PLAYER = `
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const hash = (trace) => trace.join().split('').reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) >>> 0, 7).toString(36);
  export const child = defineWorkflow({
    id: 'child',
    run: async (ctx, { ms }) => { await ctx.sleep(ms); },
  });
  export const play = defineWorkflow({
    id: 'play',
    steps: { idempotent: true },
    run: async (ctx, { plan }) => {
      const trace = [];
      const name = () => 'after-' + hash(trace);
      const kinds = {
        step: ({ ms }) => {
          const before = [...trace];
          return ctx.step(name(), async () => { await pause(ms); return before; });
        },
        sleep: ({ ms }) => ctx.sleep(name(), ms),
        signal: (node) => ctx.waitForSignal(node.name),
        child: (node) => ctx.runWorkflow('child', node, { name: name() }),
        all: ({ of }, path) => ctx.all(of.map((nodes, place) => () => go(nodes, path + '.' + place))),
        async race({ of }, path) {
          let first;
          await ctx.all(of.map((nodes, place) => async () => {
            await go(nodes, path + '.' + place);
            first ??= place;
            await ctx.step(name(), () => [...trace]);
          }));
          trace.push(path + ' won by ' + first);
        },
      };
      async function go(nodes, path) {
        for (const [place, node] of nodes.entries()) {
          await kinds[node.do](node, path + '.' + place);
          trace.push(path + '.' + place);
        }
      }
      await go(plan, '');
      return trace;
    },
  });`;

/** Sends each waiting step of the runs the signal that it waits for. */
async function sendSignals(daemon: DaemonProcess, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const waiting = (await daemon.steps(id)).flatMap(({ waitingFor }) => waitingFor?.name ?? []);
    for (const name of waiting) {
      const params = { runId: id as never, name };
      await daemon.call(sendSignal, { params, body: { payload: null } });
    }
  }
}

test(
  `random functions with branches, races, children and signals replay alike under random kills (seed ${SEED})`,
  async () => {
    const random = seeded(SEED);
    const plans = Array.from(
      { length: RUNS },
      (): Plan => [
        { do: 'all', of: [planOf(random, 2), planOf(random, 1), planOf(random, 1)] },
        ...planOf(random, 1),
      ],
    );
    const dataDir = await tempDir();
    await writeCodePlugin(dataDir, PLAYER, { permissions: { platform: { workflows: true } } });
    const start = () => startProcess(dataDir, POISON_NEVER);
    const first = await start();
    const ids = await begin(
      first,
      'play',
      plans.map((plan) => ({ plan })),
    );
    const daemon = await underKills(first, { start, random }, (at) => sendSignals(at, ids));
    await expect
      .poll(async () => {
        const left = await unfinished(daemon);
        await sendSignals(
          daemon,
          ids.filter((id) => left.includes(id)),
        );
        return left;
      }, UNFINISHED)
      .toEqual([]);
    for (const [index, id] of ids.entries()) {
      const run = await daemon.run(id);
      const which = `seed ${SEED}, plan ${JSON.stringify(plans[index])}`;
      expect(run.error, which).toBeNull();
      const trace = run.output as string[];
      for (const { uses, output } of await daemon.steps(id)) {
        if (uses !== CODE_STEP) continue;
        // What the function had seen then is what it saw at the end.
        expect(output, which).toEqual(trace.slice(0, (output as string[]).length));
      }
    }
  },
  180_000 + KILLS * 6000,
);

test(
  `a saga that reserves side by side and undoes what it reserved runs to its end under random kills (seed ${SEED})`,
  async () => {
    const random = seeded(SEED);
    const ledger = await startLedger();
    const dataDir = await tempDir();
    const source = `
      const note = (ctx, name, key) => ctx.fetch('${ledger.url}/' + name, { method: 'POST', headers: { 'idempotency-key': key } });
      export const saga = defineWorkflow({
        id: 'saga',
        run: async (ctx, { items, fails }) => {
          const undo = [];
          const once = (name) => ctx.step(name, async ({ idempotencyKey }) => { await note(ctx, name, idempotencyKey); }, { idempotent: true });
          try {
            await ctx.all(items.map(({ name, ms }) => async () => {
              await ctx.step('price', () => new Promise((done) => setTimeout(done, ms)), { idempotent: true });
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
    const start = () => startProcess(dataDir, POISON_NEVER);
    const inputs = Array.from({ length: RUNS }, (_, run) => ({
      items: Array.from({ length: 5 }, (_unused, item) => ({ name: `${item}`, ms: random() * 300 })),
      fails: run % 4 !== 0,
    }));
    const first = await start();
    const ids = await begin(first, 'saga', inputs);
    const daemon = await underKills(first, { start, random }, async () => {});
    await expect.poll(() => unfinished(daemon), UNFINISHED).toEqual([]);
    for (const [index, id] of ids.entries()) {
      const run = await daemon.run(id);
      expect(run.error, `seed ${SEED}`).toBeNull();
      const undone = inputs[index]!.fails ? (run.output as string[]).toReversed() : [];
      expect((run.output as string[]).toSorted()).toEqual(['0', '1', '2', '3', '4']);
      const noted = new Set(
        ledger.entries.filter(({ key }) => key?.startsWith(`${id}/`)).map(({ name }) => name),
      );
      const undoing = [...noted].filter((name) => name.startsWith('undo-'));
      expect(undoing, `seed ${SEED}`).toEqual(undone.map((name) => `undo-${name}`));
      expect(noted.has('charge')).toBe(!inputs[index]!.fails);
    }
  },
  180_000 + KILLS * 6000,
);
