import { expect } from 'vitest';
import type { DaemonProcess } from './process.ts';
import type { TestWorkflow } from './workflow.ts';

const POLL = { timeout: 30_000, interval: 20 };

/**
 * Starts a run that waits for a timer, and waits for its end. By then, runs that were due before have been claimed, so
 * a test can check that they were not. `wake` moves a test clock and lets the engine look for due runs.
 */
export async function runAnother(
  { start, run }: Pick<TestWorkflow, 'start' | 'run'> | Pick<DaemonProcess, 'start' | 'run'>,
  wake?: () => Promise<void>,
): Promise<void> {
  const nap = { id: 'nap', uses: 'wait', with: { ms: 1 } };
  const id = await start({ steps: [nap, { id: 'set', uses: 'set', with: { v: 1 } }] });
  const status = async () => (await run(id)).status;
  await expect.poll(status, POLL).toMatch(/waiting|succeeded/);
  await wake?.();
  await expect.poll(status, POLL).toBe('succeeded');
}

/** As `runAnother`, after the test clock has moved on by a second. */
export function runAnotherLater(it: TestWorkflow): Promise<void> {
  return runAnother(it, async () => {
    it.clock.advance(1000);
    await it.services.engine.tick();
  });
}
