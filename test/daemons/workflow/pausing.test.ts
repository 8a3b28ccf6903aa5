import { expect, test } from 'vitest';
import { Pausing, type PausingDeps } from '../../../src/daemons/workflow/domain/engine/pausing.ts';
import type { RunRecord } from '../../../src/store/ports/index.ts';

test.each([
  { status: 'running', isPaused: true },
  { status: 'cancelling', isPaused: false },
] as const)('a run that is $status after its pause was stored is told so: $isPaused', async (run) => {
  const told: boolean[] = [];
  const stored = { id: 'run_1', seq: 1, status: run.status, pauseScope: 'run' } as RunRecord;
  const deps = {
    clock: { now: () => 1 },
    hooks: { changed: () => {} },
    store: { pauses: { pauseRun: async () => ({ owner: 1 }) }, runs: { find: async () => stored } },
    claims: {
      active: new Map([['run_1', { setPaused: (isPaused: boolean) => void told.push(isPaused) }]]),
      opening: new Map(),
      stale: () => {},
    },
    host: { isWorking: true },
  };
  await new Pausing(deps as unknown as PausingDeps).pause(stored);
  expect(told).toEqual([run.isPaused]);
});
