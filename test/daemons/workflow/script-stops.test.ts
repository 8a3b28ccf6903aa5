import { expect, test } from 'vitest';
import { processesOf } from './support/processes-of.ts';
import { startHolder, startScript } from './support/scripts.ts';
import { startWorkflow } from './support/workflow.ts';

const POLL = { timeout: 10_000, interval: 20 };

test('a stop of the service lets a script finish within workflow.drainMs', async () => {
  const it = await startWorkflow();
  const { id, rounds, letGo } = await startHolder(it);
  const stopped = it.close();
  const before = rounds();
  await expect.poll(rounds, POLL).toBeGreaterThan(before + 20);
  await letGo();
  await stopped;
  const { dataDir } = it;
  const next = await startWorkflow({ dataDir });
  expect((await next.run(id)).status).toBe('succeeded');
});

test('a stop of the service kills a script after workflow.drainMs; the script waits for a decision', async () => {
  const config = { workflow: { drainMs: 100 } };
  const it = await startWorkflow({ config });
  const id = await startScript(it, [{ id: 'script', run: 'exec sleep 31536004' }]);
  await expect.poll(() => processesOf('sleep 31536004').length, POLL).toBe(1);
  await it.close();
  await expect.poll(() => processesOf('sleep 31536004'), POLL).toEqual([]);
  const { dataDir } = it;
  const next = await startWorkflow({ dataDir, config });
  await next.until(id, 'waiting');
  expect(await next.step(id, 'main.script')).toMatchObject({ waitingFor: { for: 'decision' } });
});
