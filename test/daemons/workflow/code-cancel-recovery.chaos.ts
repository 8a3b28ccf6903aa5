import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { getRun } from '../../../src/contracts/index.ts';
import { setUpBookings } from './support/bookings.ts';
import { PLAY_MS, playRandom, playUnderDeaths, SEED } from './support/played-runs.ts';

test(
  `under random deaths and cancels each saga is done or undone, as its status tells (seed ${SEED})`,
  async () => {
    const random = playRandom();
    const { ledger, dataDir } = await setUpBookings();
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
