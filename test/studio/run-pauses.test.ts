import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditedActions } from './support/people.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const POLL = { timeout: 20_000 };

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'studio: pauses', () => {
  let studio: Studio;

  beforeAll(async () => {
    studio = await startStudio();
  }, 120_000);
  afterAll(() => studio?.close());

  const start = async (): Promise<string> =>
    (await studio.svc('workflows', 'run', 'ship', '--input', '{"order":1}')).id;
  const run = async (id: string) => (await studio.svc('workflows', 'show', id)).run;

  test('a run is paused and resumed on its screen, and its workflow on the list', async () => {
    const id = await start();
    await expect.poll(async () => (await run(id)).status, POLL).toBe('waiting');
    const { page, problems, context } = await studio.open(`/studio/runs/${id}`);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused. Steps in flight end').waitFor();
    expect((await run(id)).pauseScope).toBe('run');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    expect(await run(id)).not.toHaveProperty('pauseScope');

    await page.goto(`${studio.url}/studio/runs?workflowId=ship`);
    await page.getByRole('button', { name: 'Pause workflow' }).click();
    await page.getByRole('button', { name: 'Resume workflow' }).waitFor();
    const queued = await start();
    expect(await run(queued)).toMatchObject({ status: 'queued', pauseScope: 'workflow' });
    await page.getByLabel('Paused').selectOption('true');
    await page.waitForURL(/paused=true/);
    await expect.poll(() => page.locator('.row .status').allTextContents(), POLL).toHaveLength(1);
    await expect
      .poll(() => page.locator('footer.same').textContent(), POLL)
      .toContain('svc workflows runs --paused --workflow ship');
    await page.getByRole('button', { name: 'Resume workflow' }).click();
    await page.getByRole('button', { name: 'Pause workflow' }).waitFor();
    await expect.poll(async () => (await run(queued)).status, POLL).toBe('waiting');
    expect(problems).toEqual([]);
    expect(await auditedActions(studio)).toEqual(
      expect.arrayContaining(['run.pause', 'run.resume', 'workflow.pause', 'workflow.resume']),
    );
    await context.close();
  });
});
