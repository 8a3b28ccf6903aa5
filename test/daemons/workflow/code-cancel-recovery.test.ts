import { expect, test } from 'vitest';
import { postCancelRun } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { writeCodePlugin } from './support/code.ts';
import {
  begin,
  KILLS,
  POISON_NEVER,
  SEED,
  seeded,
  UNFINISHED,
  underKills,
  unfinished,
} from './support/kills.ts';
import { type Ledger, startLedger } from './support/ledger.ts';
import { type DaemonProcess, startProcess } from './support/process.ts';

const POLL = { timeout: 20_000, interval: 20 };

/** Books its parts side by side, and releases what it has booked when it fails or is cancelled. */
const saga = (ledger: Ledger): string => `
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const note = async (ctx, name, key) => {
    await ctx.fetch('${ledger.url}/' + name, { method: 'POST', headers: { 'idempotency-key': key } });
  };
  export const saga = defineWorkflow({
    id: 'saga',
    steps: { idempotent: true },
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
  await writeCodePlugin(dataDir, saga(ledger), { permissions: { network: [new URL(ledger.url).host] } });
  return { ledger, start: () => startProcess(dataDir, POISON_NEVER) };
}

const cancel = (daemon: DaemonProcess, id: string) =>
  daemon.call(postCancelRun, { params: { runId: id as never } });

test('a compensation that is killed goes on where it was; the run is `cancelling` until it has ended', async () => {
  const { ledger, start } = await setUp();
  ledger.answer('release-1', (_, response, nth) => {
    if (nth > 1) response.end('{}');
  });
  let daemon = await start();
  const parts = ['0', '1', '2'].map((name, place) => ({ name, ms: place * 50 }));
  ledger.answer('charge', () => {});
  const [id] = (await begin(daemon, 'saga', [{ parts, fails: false }])) as [string];
  await expect.poll(() => ledger.count('charge'), POLL).toBe(1);
  await cancel(daemon, id);
  ledger.cut();
  await expect.poll(() => ledger.count('release-1'), POLL).toBe(1);
  await daemon.kill();
  daemon = await start();
  expect((await daemon.run(id)).status).toBe('cancelling');
  await expect(cancel(daemon, id)).rejects.toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
  await expect.poll(async () => (await daemon.run(id)).status, POLL).toBe('cancelled');
  expect((await daemon.run(id)).error).toBeNull();
  expect(['release-2', 'release-1', 'release-0'].map(ledger.count)).toEqual([1, 2, 1]);
}, 90_000);

test(
  `under random kills and cancels each saga is done or undone, as its status tells (seed ${SEED})`,
  async () => {
    const random = seeded(SEED);
    const { ledger, start } = await setUp();
    const names = ['0', '1', '2', '3'];
    const inputs = Array.from({ length: 12 }, (_, run) => ({
      parts: names.map((name) => ({ name, ms: random() * 400 })),
      fails: run % 3 === 0,
    }));
    const first = await start();
    const ids = await begin(first, 'saga', inputs);
    const toCancel = ids.filter(() => random() < 0.6);
    const daemon = await underKills(first, { start, random }, async (at) => {
      for (const id of toCancel) {
        await new Promise((resolve) => setTimeout(resolve, random() * 300));
        await cancel(at, id).catch(() => {});
      }
    });
    await expect.poll(() => unfinished(daemon), UNFINISHED).toEqual([]);
    for (const [index, id] of ids.entries()) {
      const { status, error } = await daemon.run(id);
      const which = `seed ${SEED}, run ${index} ${status} ${JSON.stringify(error)}`;
      const noted = new Set(
        ledger.entries.filter(({ key }) => key?.startsWith(`${id}/`)).map(({ name }) => name),
      );
      const of = (what: string) => names.filter((name) => noted.has(`${what}-${name}`));
      if (status === 'succeeded') {
        expect([of('book'), of('release'), noted.has('charge')], which).toEqual([names, [], true]);
        continue;
      }
      // One that fails undoes itself: a cancel meanwhile changes nothing.
      expect(inputs[index]!.fails ? ['failed', 'cancelled'] : ['cancelled'], which).toContain(status);
      expect(of('release'), which).toEqual(expect.arrayContaining(of('book')));
    }
  },
  180_000 + KILLS * 6000,
);
