import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { getRun, postCancelRun, startRun } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { writeCodePlugin } from './support/code.ts';
import { startLedger } from './support/ledger.ts';
import { PLAY_MS, playRandom, playUnderDeaths, REPEATABLE, SEED } from './support/played-runs.ts';
import { startProcess } from './support/process.ts';

const POLL = { timeout: 20_000, interval: 20 };

/** Books its parts side by side, and releases what it has booked when it fails or is cancelled. */
const saga = (url: string): string => `
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const note = async (ctx, name, key) => {
    await ctx.fetch('${url}/' + name, { method: 'POST', headers: { 'idempotency-key': key } });
  };
  export const saga = defineWorkflow({
    id: 'saga',
    steps: ${REPEATABLE},
    run: async (ctx, { parts, fails }) => {
      const undo = [];
      const once = (name) => ctx.step(name, ({ idempotencyKey }) => note(ctx, name, idempotencyKey));
      try {
        await ctx.all(parts.map(({ name, ms }) => async () => {
          await ctx.step('price', () => pause(ms));
          undo.push(name);
          await once('book-' + name);
        }));
        await ctx.sleep(100);
        if (fails) throw new Error('declined');
        await once('charge');
      } catch (error) {
        await ctx.nonCancellable(async () => {
          for (const name of undo.toReversed()) {
            await once('release-' + name);
            await ctx.sleep(10);
          }
        });
        throw error;
      }
    },
  });`;

async function setUp() {
  const ledger = await startLedger();
  const dataDir = await tempDir();
  const { url } = ledger;
  await writeCodePlugin(dataDir, saga(url), { permissions: { network: [new URL(url).host] } });
  return { ledger, dataDir };
}

test('a killed compensation resumes; the run is `cancelling` until it has ended', async () => {
  const { ledger, dataDir } = await setUp();
  ledger.answer('release-1', (_, response, nth) => {
    if (nth > 1) response.end('{}');
  });
  let daemon = await startProcess(dataDir, {});
  const parts = ['0', '1', '2'].map((name, place) => ({ name, ms: place * 50 }));
  ledger.answer('charge', () => {});
  const body = { workflowId: 'saga', input: { parts, fails: false } };
  const { id } = (await daemon.call(startRun, { body })).run;
  const cancel = () => daemon.call(postCancelRun, { params: { runId: id } });
  await expect.poll(() => ledger.count('charge'), POLL).toBe(1);
  await cancel();
  ledger.cut();
  await expect.poll(() => ledger.count('release-1'), POLL).toBe(1);
  await daemon.kill();
  daemon = await startProcess(dataDir, {});
  expect((await daemon.run(id)).status).toBe('cancelling');
  await expect(cancel()).rejects.toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
  await expect.poll(async () => (await daemon.run(id)).status, POLL).toBe('cancelled');
  expect((await daemon.run(id)).error).toBeNull();
  expect(['release-2', 'release-1', 'release-0'].map(ledger.count)).toEqual([1, 2, 1]);
}, 90_000);

test(
  `under random deaths and cancels each saga is done or undone, as its status tells (seed ${SEED})`,
  async () => {
    const random = playRandom();
    const { ledger, dataDir } = await setUp();
    const names = ['0', '1', '2', '3'];
    const inputs = Array.from({ length: 12 }, (_, run) => ({
      parts: names.map((name) => ({ name, ms: random() * 400 })),
      fails: run % 3 === 0,
    }));
    const cancels = inputs.map(() => (random() < 0.6 ? random() * 6000 : null));
    const { client, ids } = await playUnderDeaths({
      ...{ name: 'cancelled sagas', dataDir, random, workflowId: 'saga', inputs },
      async beside(caller, started) {
        const cancel = async (id: string, ms: number | null): Promise<void> => {
          if (ms === null) return;
          await pause(ms);
          await caller.cancel(id);
        };
        await Promise.all(started.map((id, run) => cancel(id, cancels[run]!)));
      },
    });
    for (const [index, runId] of ids.entries()) {
      const { status, error } = await client.call(getRun, { params: { runId } });
      const which = `seed ${SEED}, run ${index} ${status} ${JSON.stringify(error)}`;
      const noted = ledger.namesOf(runId);
      const of = (what: string) => names.filter((name) => noted.includes(`${what}-${name}`));
      if (status === 'succeeded') {
        expect([of('book'), of('release'), noted.includes('charge')], which).toEqual([names, [], true]);
        continue;
      }
      // One that fails undoes itself: a cancel meanwhile changes nothing.
      expect(inputs[index]!.fails ? ['failed', 'cancelled'] : ['cancelled'], which).toContain(status);
      expect(of('release'), which).toEqual(expect.arrayContaining(of('book')));
    }
  },
  PLAY_MS,
);
