import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { writeCodePlugin } from '../daemons/workflow/support/code.ts';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

/** Less than a call returns, so that the lines of two steps need two calls. */
const LINES = 600;
const SOURCE = `export const talk = defineCommand(async (ctx, { lines }) => {
  for (let n = 0; n < lines; n++) {
    // Faster lines are dropped.
    if (n % 50 === 49) await new Promise((resolve) => setTimeout(resolve, 250));
    ctx.log.info('line ' + n);
  }
});`;
const talk = (id: string, lines: number) => ({ id, uses: 'code/talk', with: { lines } });
const TALKS = {
  id: 'talks',
  jobs: { main: { steps: [talk('quiet', 3), talk('loud', LINES), talk('last', LINES)] } },
};

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'log of a step in the studio', () => {
  let studio: Studio;
  let runId: string;

  beforeAll(async () => {
    studio = await startStudio({}, async (folder) => {
      await writeCodePlugin(folder, SOURCE, { commands: [{ id: 'talk', handler: 'flows.js#talk' }] });
      await writeFile(join(folder, 'workflows/talks.yaml'), JSON.stringify(TALKS));
    });
    runId = (await studio.svc('workflows', 'run', 'talks')).id;
    await vi.waitFor(
      async () => expect((await studio.svc('workflows', 'show', runId)).run.status).toBe('succeeded'),
      { timeout: 30_000, interval: 200 },
    );
  });
  afterAll(() => studio?.close());

  test('shows the newest lines first, and earlier ones on demand', async () => {
    const { page, problems, context } = await studio.open(`/studio/runs/${runId}?step=main.loud`);
    const lines = page.getByRole('list', { name: 'Log of main.loud' }).locator('li');
    await lines.filter({ hasText: `line ${LINES - 1}` }).waitFor();
    expect(await lines.count()).toBeLessThan(LINES);
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Load earlier lines' }).click();
    await expect.poll(() => lines.count()).toBe(LINES);
    expect(await lines.first().textContent()).toContain('line 0');
    await page.getByRole('button', { name: 'Load earlier lines' }).waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
    await context.close();
  });

  test('finds the lines of a step behind those of later steps', async () => {
    const { page, problems, context } = await studio.open(`/studio/runs/${runId}?step=main.quiet`);
    const lines = page.getByRole('list', { name: 'Log of main.quiet' }).locator('li');
    await expect.poll(() => lines.count()).toBe(3);
    expect(problems).toEqual([]);
    await context.close();
  });
});
