import { expect, test } from 'vitest';
import { postCancelRun } from '../../src/contracts/index.ts';
import { writeCodePlugin } from '../daemons/workflow/support/code.ts';
import {
  begin,
  KILLS,
  POISON_NEVER,
  SEED,
  seeded,
  UNFINISHED,
  underKills,
  unfinished,
} from '../daemons/workflow/support/kills.ts';
import { type Ledger, startLedger } from '../daemons/workflow/support/ledger.ts';
import { type DaemonProcess, startProcess } from '../daemons/workflow/support/process.ts';
import { tempDir } from '../support/daemon.ts';

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
