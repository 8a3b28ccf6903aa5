import { expect, test } from 'vitest';
import { signalStep, workflowStep } from '../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import type { WorkflowStore } from '../../../src/store/ports/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { type BareEngine, openEngine } from './support/engine.ts';

const POLL = { timeout: 20_000, interval: 20 };
const WAITS = [{ id: 'go', uses: 'signal', with: { name: 'go' } }];

test('cancelling a child is retried after a failure, and its parent ends after it', async () => {
  let failures = 0;
  const wrap = (store: WorkflowStore): WorkflowStore => ({
    ...store,
    runs: {
      ...store.runs,
      async cancelIdle(seq, at) {
        if (failures++ === 0) throw new Error('The disk is full.');
        return store.runs.cancelIdle(seq, at);
      },
    },
  });
  const it: BareEngine = await openEngine({
    dataDir: await tempDir(),
    kinds: [signalStep, workflowStep],
    wrap,
  });
  it.definitions.register(
    [{ definition: { id: 'child', jobs: { main: { steps: WAITS } } }, source: 'test' }],
    [],
  );
  await it.engine.start();
  const { runs } = it.store;
  const id = await it.begin([{ id: 'child', uses: 'workflow', with: { id: 'child' } }]);
  const find = async (runId: string) => (await runs.find(null, runId))!;
  await expect.poll(async () => (await find(id)).status, POLL).toBe('waiting');
  const [childId] = await runs.openChildren(id);
  await expect.poll(async () => (await find(childId!)).status, POLL).toBe('waiting');
  await it.engine.cancel(await find(id));
  await expect.poll(async () => (await find(id)).status, POLL).toBe('cancelled');
  expect((await find(childId!)).status).toBe('cancelled');
  expect(failures).toBe(2);
  await it.close();
}, 60_000);
