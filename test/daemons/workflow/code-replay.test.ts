import { expect, test } from 'vitest';
import { CODE_STEP, sendSignal, startRun } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { writeCodePlugin } from './support/code.ts';
import { PLAYER, type Plan } from './support/plan-player.ts';
import { startProcess } from './support/process.ts';

const POLL = { timeout: 20_000, interval: 20 };

const PLAN: Plan = [
  {
    do: 'all',
    of: [
      [
        { do: 'step', ms: 20 },
        { do: 'sleep', ms: 50 },
        { do: 'step', ms: 0 },
      ],
      [
        { do: 'race', of: [[{ do: 'sleep', ms: 60 }], [{ do: 'step', ms: 5 }]] },
        { do: 'child', ms: 10 },
      ],
      [
        { do: 'signal', name: 'go' },
        { do: 'step', ms: 0 },
      ],
    ],
  },
  { do: 'step', ms: 0 },
];

test('a function with branches, a race, a child and a signal replays identically after kill -9', async () => {
  const dataDir = await tempDir();
  await writeCodePlugin(dataDir, PLAYER, { permissions: { platform: { workflows: true } } });
  let daemon = await startProcess(dataDir, {});
  const { id } = (await daemon.call(startRun, { body: { workflowId: 'play', input: { plan: PLAN } } })).run;
  const open = async () => (await daemon.steps(id)).filter(({ status }) => status !== 'succeeded');
  // Two branches have ended, and the third waits.
  await expect.poll(async () => (await daemon.run(id)).status, POLL).toBe('waiting');
  await expect
    .poll(async () => (await open()).flatMap(({ waitingFor }) => waitingFor?.for ?? []), POLL)
    .toEqual(['signal']);
  await daemon.kill();
  daemon = await startProcess(dataDir, {});
  await daemon.call(sendSignal, { params: { runId: id, name: 'go' }, body: {} });
  await expect.poll(async () => (await daemon.run(id)).status, POLL).toBe('succeeded');
  const { error, output } = await daemon.run(id);
  expect(error).toBeNull();
  const trace = output as string[];
  for (const step of await daemon.steps(id))
    if (step.uses === CODE_STEP)
      expect(step.output).toEqual(trace.slice(0, (step.output as string[]).length));
}, 60_000);
