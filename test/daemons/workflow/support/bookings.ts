import { tempDir } from '../../../support/daemon.ts';
import { writeCodePlugin } from './code.ts';
import { startLedger } from './ledger.ts';
import { REPEATABLE } from './played-runs.ts';

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

export async function setUpBookings() {
  const ledger = await startLedger();
  const dataDir = await tempDir();
  const { url } = ledger;
  await writeCodePlugin(dataDir, saga(url), { permissions: { network: [new URL(url).host] } });
  return { ledger, dataDir };
}
