import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { startRun } from '../../../src/contracts/index.ts';
import { seededRandom, seedOf } from '../../support/random.ts';
import { announce, planDeaths, underDeaths } from './support/deaths.ts';
import { callLedger, setUpLedger } from './support/kept-ledger.ts';
import { LEDGER_CONFIG } from './support/ledger.ts';
import { MortalService, type ServiceDeath } from './support/mortal-service.ts';
import { asDefinition, cel } from './support/workflow.ts';

const SEED = seedOf(process.env);
const KILLED_RUNS = Number(process.env.SVC_TEST_KILL_RUNS ?? 60);
const RUNS_OF_LIFE = 6;

test('a limit of two is kept from both sides through kills: never more at work, and never fewer while some are queued', async () => {
  const { ledger, start } = await setUpLedger();
  const open = new Map<string, ServerResponse>();
  let most = 0;
  ledger.answer('limited', (request, response) => {
    open.set(request.url!, response);
    most = Math.max(most, open.size);
    response.on('close', () => {
      if (open.get(request.url!) === response) open.delete(request.url!);
    });
  });
  const limited = {
    concurrency: { key: 'two', limit: 2 },
    steps: [callLedger(ledger, 'limited', { idempotencyKey: cel('run.id') })],
  };
  let daemon = await start();
  const ids = await Promise.all(Array.from({ length: 5 }, () => daemon.start(limited)));
  const finish = (key: string): void => {
    open.get(key)!.end('{}');
    open.delete(key);
  };
  const atWork = () => expect.poll(() => open.size, { timeout: 20_000 }).toBe(2);
  for (let left = ids.length; left > 2; left--) {
    await atWork();
    // Killed while two are at work, then again while one of them has just given its place to the next.
    await daemon.kill();
    daemon = await start();
    await atWork();
    finish([...open.keys()][0]!);
    if (left % 2 === 0) {
      await daemon.kill();
      daemon = await start();
    }
  }
  ledger.answer('limited', (_, response) => response.end('{}'));
  for (const key of open.keys()) finish(key);
  for (const id of ids)
    await expect.poll(async () => (await daemon.run(id)).status, { timeout: 20_000 }).toBe('succeeded');
  expect(most).toBe(2);
}, 120_000);

test(
  `under random kills every run ends, keyed effects happen once a key, finished steps never again, and a limit of two holds (seed ${SEED})`,
  async () => {
    const { ledger, dataDir } = await setUpLedger();
    const random = seededRandom(SEED);
    const open = new Map<string, number>();
    let mostLimited = 0;
    for (const name of ['one', 'two', 'limited']) {
      ledger.answer(name, (request, response) => {
        const key = request.url!;
        if (name === 'limited') {
          open.set(key, (open.get(key) ?? 0) + 1);
          mostLimited = Math.max(mostLimited, open.size);
        }
        const done = setTimeout(() => response.end('{}'), random() * 8);
        response.on('close', () => {
          clearTimeout(done);
          open.delete(key);
        });
      });
    }
    const keyed = { idempotencyKey: cel('run.id') };
    const plain = {
      steps: [
        { id: 'zero', uses: 'set' },
        callLedger(ledger, 'one', keyed),
        callLedger(ledger, 'two', keyed),
      ],
    };
    const limited = { concurrency: { key: 'two', limit: 2 }, steps: [callLedger(ledger, 'limited', keyed)] };
    // So short that many end while their predecessor's work is taken up.
    const lives = { count: Math.ceil(KILLED_RUNS / RUNS_OF_LIFE), shortestMs: 0, longestMs: 60 };
    const deaths = planDeaths<ServiceDeath>(random, lives, { all: ['kill'], rest: ['kill'] });
    announce('recovery', SEED, deaths);
    const service = await MortalService.start({ dataDir, config: LEDGER_CONFIG, random });
    const { client } = service;
    const ids: string[] = [];
    await underDeaths(service, deaths, async (life) => {
      const keys = Array.from({ length: RUNS_OF_LIFE }, (_, n) => `${life}-${n}`);
      const begun = keys.map(async (idempotencyKey, n) => {
        const definition = asDefinition(n % 3 === 0 ? limited : plain);
        return (await client.call(startRun, { body: { definition, idempotencyKey } })).run.id;
      });
      ids.push(...(await Promise.all(begun)));
    });
    await client.allEnded();
    const runs = await client.runs();
    expect(runs.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(new Set(runs.map(({ status }) => status))).toEqual(new Set(['succeeded']));
    expect(mostLimited).toBeLessThanOrEqual(2);
    // A step whose end was on record is not run again: at most one answer a step was given and lost with the process.
    for (const id of ids)
      for (const step of await client.steps(id)) {
        expect(step.history.filter(({ status }) => status === 'succeeded').length).toBeLessThanOrEqual(1);
        expect(step.history.length).toBe(step.attempts);
      }
    // Whoever receives the effects has each once: a step's requests carry one key, however often it was interrupted.
    const names = new Set(ledger.entries.map(({ name }) => name));
    const effects = new Set(ledger.entries.map(({ name, key }) => `${name} ${key ?? 'none'}`));
    expect(effects.size).toBe(names.size);
    expect(ledger.entries.every(({ key }) => key !== null)).toBe(true);
  },
  120_000 + KILLED_RUNS * 1000,
);
