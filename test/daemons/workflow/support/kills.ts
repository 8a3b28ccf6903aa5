import { listRuns, startRun } from '../../../../src/contracts/index.ts';
import type { DaemonProcess } from './process.ts';

/** What is drawn from it is the same for the same seed; when a kill falls is not. */
export const SEED = Number(process.env.SVC_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
export const KILLS = Number(process.env.SVC_TEST_KILL_RUNS ?? 60) / 10;
/** These tests are about what a run comes to, however often it is hit. */
export const POISON_NEVER = { workflow: { poisonAfter: 1000 } };
export const UNFINISHED = { timeout: 60_000, interval: 100 };

export type Random = () => number;

/** mulberry32. */
export function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export async function begin(daemon: DaemonProcess, workflowId: string, inputs: unknown[]): Promise<string[]> {
  const started = inputs.map((input) => daemon.call(startRun, { body: { workflowId, input } as never }));
  return (await Promise.all(started)).map(({ run }) => run.id);
}

export async function unfinished(daemon: DaemonProcess): Promise<string[]> {
  const { items } = await daemon.call(listRuns, { query: { limit: 1000 } as never });
  return items.filter(({ finishedAt }) => finishedAt === null).map(({ id }) => id);
}

/** Does the work again and again until the service has been killed so often, at any moment. */
export async function underKills(
  first: DaemonProcess,
  { start, random }: { start: () => Promise<DaemonProcess>; random: Random },
  work: (daemon: DaemonProcess) => Promise<void>,
): Promise<DaemonProcess> {
  let daemon = first;
  for (let kill = 0; kill < KILLS; kill++) {
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    setTimeout(end, 300 + random() * 1500);
    // A call that the kill cuts off may have had its effect or not.
    const working = work(daemon).catch(() => {});
    await over;
    await daemon.kill();
    await working;
    daemon = await start();
  }
  return daemon;
}
