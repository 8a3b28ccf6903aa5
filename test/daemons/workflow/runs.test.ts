import { expect, test } from 'vitest';
import { startWorkflow } from './support/workflow.ts';

test('a run of three steps hands values on and ends with its outputs', async () => {
  const it = await startWorkflow();
  const id = await it.start(
    {
      outputs: { total: '${{ jobs.main.outputs.total }}' },
      jobs: {
        main: {
          outputs: { total: '${{ steps.double.output.value + 1 }}' },
          steps: [
            { id: 'read', uses: 'set', with: { value: '${{ input.n }}' } },
            { id: 'double', uses: 'set', with: { value: '${{ steps.read.output.value * 2 }}' } },
            { id: 'say', uses: 'set', with: { text: 'it is ${{ steps.double.output.value }}' } },
          ],
        },
      },
    },
    { input: { n: 20 } },
  );
  const run = await it.until(id, 'succeeded');
  expect(run.output).toEqual({ total: 41 });
  expect((await it.step(id, 'main.say')).output).toEqual({ text: 'it is 40' });
  expect(await it.eventTypes(id)).toEqual([
    'run.queued',
    'run.started',
    'job.started main',
    'step.started main.read',
    'step.succeeded main.read',
    'step.started main.double',
    'step.succeeded main.double',
    'step.started main.say',
    'step.succeeded main.say',
    'job.succeeded main',
    'run.succeeded',
  ]);
});
