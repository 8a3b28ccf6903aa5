import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { sqliteWorkflowStore } from '../../../../src/store/sqlite/index.ts';
import { tempDir } from '../../../support/daemon.ts';
import { boot, claim, started } from '../../suites/workflow.ts';

test('a run whose first write comes after the pause of its workflow has begun, and is not paused', async () => {
  const store = await sqliteWorkflowStore({ dataDir: await tempDir(), logger: silentLogger });
  onTestFinished(() => store.close());
  const fence = await boot(store);
  const begun = await started(store);
  const paused = await started(store);
  const { tenantId, workflowId } = begun;
  await store.pauses.pauseRun(paused.seq, 1);
  await store.pauses.pauseWorkflow({ tenantId, workflowId, pausedAt: 2, pausedBy: 'host' });
  const scopeOf = async (id: string) => (await store.runs.find(tenantId, id))?.pauseScope;
  expect(await scopeOf(begun.id)).toBe('workflow');
  for (const run of [begun, paused])
    expect(await store.runs.write(claim(run, fence))).toMatchObject({ applied: true });
  expect(await scopeOf(begun.id)).toBeNull();
  expect(await scopeOf(paused.id)).toBe('run');
});
