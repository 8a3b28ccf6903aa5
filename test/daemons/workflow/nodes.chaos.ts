import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { sendSignal, startRun } from '../../../src/contracts/index.ts';
import { below, type Random, seededRandom, seedOf } from '../../support/random.ts';
import { callLedger } from './support/kept-ledger.ts';
import { type Node, type Nodes, openNodes } from './support/nodes.ts';
import { asDefinition, cel } from './support/workflow.ts';

const SEED = seedOf(process.env);
const RUNS = Number(process.env.SVC_TEST_NODE_RUNS ?? 240);
const DEATHS = Number(process.env.SVC_TEST_NODE_DEATHS ?? 9);
const NAMES = ['a', 'b', 'c'];
/** Longer than a lease with the sweep that follows. */
const LONG_MS = 14_000;

type Death = 'restart' | 'absence' | 'pause';
const DEATHS_OF: Death[] = ['restart', 'restart', 'absence', 'pause'];

/** Three nodes of which one at a time dies, is away or hangs. */
class MortalNodes {
  readonly #nodes: Nodes;
  readonly #random: Random;
  readonly #live = new Map<string, Node>();

  constructor(nodes: Nodes, random: Random) {
    this.#nodes = nodes;
    this.#random = random;
  }

  async start(): Promise<void> {
    for (const name of NAMES) this.#live.set(name, await this.#nodes.start(name));
  }

  /** Repeats a call on another node until one answers. */
  async call<Reply>(make: (node: Node) => Promise<Reply>): Promise<Reply> {
    for (;;) {
      const live = [...this.#live.values()];
      try {
        return await make(live[below(this.#random, live.length)]!);
      } catch (error) {
        const code = (error as { code?: string }).code ?? '';
        if (!/^(UPSTREAM_|SERVICE_|STORE_)/.test(code)) throw error;
        await pause(50);
      }
    }
  }

  async die(how: Death): Promise<void> {
    const name = NAMES[below(this.#random, NAMES.length)]!;
    const node = this.#live.get(name)!;
    this.#live.delete(name);
    if (how === 'pause') {
      node.pause();
      await pause(LONG_MS);
      node.resume();
      // It finds that another node has taken over its runs.
      await node.hadFault();
    } else await node.kill();
    if (how === 'absence') await pause(LONG_MS);
    this.#live.set(name, await this.#nodes.start(name));
  }
}

test(`while nodes die, hang and return, no run or signal is lost, and a limit of two holds (seed ${SEED})`, async () => {
  const random = seededRandom(SEED);
  const nodes = await openNodes();
  const { ledger, database } = nodes;
  const open = new Map<string, number>();
  let most = 0;
  for (const name of ['one', 'two', 'limited'])
    ledger.answer(name, (request, response) => {
      const key = request.url!;
      if (name === 'limited') open.set(key, (open.get(key) ?? 0) + 1);
      most = Math.max(most, open.size);
      const done = setTimeout(() => response.end('{}'), random() * 300);
      response.on('close', () => {
        clearTimeout(done);
        open.delete(key);
      });
    });
  const keyed = { idempotencyKey: cel('run.id') };
  const signalled = {
    steps: [
      callLedger(ledger, 'one', keyed),
      { id: 'go', uses: 'signal', with: { name: 'go' } },
      callLedger(ledger, 'two', keyed),
    ],
  };
  const limited = { concurrency: { key: 'two', limit: 2 }, steps: [callLedger(ledger, 'limited', keyed)] };
  const mortal = new MortalNodes(nodes, random);
  await mortal.start();
  let isOver = false;
  const start = async (n: number): Promise<string> => {
    await pause(below(random, DEATHS * 3000));
    const definition = asDefinition(n % 3 === 0 ? limited : signalled);
    const body = { definition, idempotencyKey: `run ${n}` };
    const { run } = await mortal.call((node) => node.call(startRun, { body } as never));
    if (n % 3 === 0) return run.id;
    await pause(below(random, 1000));
    const signal = { params: { runId: run.id, name: 'go' }, body: { payload: n, idempotencyKey: 'go' } };
    await mortal.call((node) => node.call(sendSignal, signal as never));
    return run.id;
  };
  const starts = Promise.all(Array.from({ length: RUNS }, (_, n) => start(n)));
  for (let n = 0; n < DEATHS && !isOver; n++) {
    await pause(below(random, 2000));
    await mortal.die(DEATHS_OF[below(random, DEATHS_OF.length)]!);
  }
  const ids = await starts;
  isOver = true;
  const statuses = async () => {
    const { rows } = await database.query('select status, count(*)::int from svc.run group by status');
    return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
  };
  await expect.poll(statuses, { timeout: 120_000, interval: 200 }).toEqual({ succeeded: RUNS });
  expect(new Set(ids).size).toBe(RUNS);
  const keys = (name: string) =>
    new Set(ledger.entries.filter((entry) => entry.name.startsWith(name)).map(({ key }) => key)).size;
  const limitedRuns = Math.ceil(RUNS / 3);
  expect([keys('one'), keys('two'), keys('limited')]).toEqual([
    RUNS - limitedRuns,
    RUNS - limitedRuns,
    limitedRuns,
  ]);
  expect(most).toBeLessThanOrEqual(2);
}, 600_000);
