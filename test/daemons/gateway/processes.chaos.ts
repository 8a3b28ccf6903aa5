import { expect, test } from 'vitest';
import { isAlive } from '../../support/is-alive.ts';
import { printedRandom } from '../../support/random.ts';
import { sigtermDuring } from './support/sigterm-during.ts';

test.each([1, 2])(
  'SIGTERM during 1,000 requests: %i processes answer them all and end',
  { timeout: 60_000 },
  async (processes) => {
    const random = printedRandom();
    const { cut, pids } = await sigtermDuring({ processes, requests: 1000, delayMs: () => random() * 200 });
    expect(pids).toHaveLength(processes);
    expect(cut).toEqual([]);
    await expect.poll(() => pids.filter(isAlive), { timeout: 20_000, interval: 50 }).toEqual([]);
  },
);
