import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { cel } from '../daemons/workflow/support/workflow.ts';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const set = (id: string) => ({ id, uses: 'set', with: { value: 1 } });

const RELEASE = {
  id: 'release',
  jobs: {
    build: { steps: [set('compile'), set('pack')] },
    test: { strategy: { matrix: { on: ['x', 'y'] } }, steps: [set('check')] },
    deploy: {
      needs: ['build', 'test'],
      steps: [
        { id: 'verify', uses: 'workflow', with: { id: 'verify', input: {} } },
        { id: 'go', uses: 'approval', with: { message: 'Deploy?' } },
        set('done'),
      ],
    },
  },
};
const VERIFY = { id: 'verify', jobs: { main: { steps: [set('look')] } } };
const WIDE = {
  id: 'wide',
  jobs: {
    many: {
      strategy: { matrix: { n: cel('input.numbers') } },
      steps: [set('one')],
    },
  },
};

/** Returns the boxes of the graph as their texts, in their order. */
const nodesOf = async (page: Page): Promise<string[]> =>
  (await page.locator('.graph li').allTextContents()).map((text) => text.replace(/\s+/g, ' '));

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'graph of a run in the studio', () => {
  let studio: Studio;
  let path: string;
  let runId: string;

  beforeAll(async () => {
    studio = await startStudio({}, async (folder) => {
      for (const definition of [RELEASE, VERIFY, WIDE])
        await writeFile(join(folder, `workflows/${definition.id}.yaml`), JSON.stringify(definition));
    });
    runId = await startRelease();
    path = `/studio/runs/${runId}`;
  });
  afterAll(() => studio?.close());

  /** Starts a run of `release` that waits for its approval. */
  async function startRelease(): Promise<string> {
    const { id } = await studio.svc('workflows', 'run', 'release');
    await vi.waitFor(
      async () => expect((await studio.svc('workflows', 'show', id)).run.waitingReason).toBe('approval'),
      { timeout: 30_000, interval: 200 },
    );
    return id;
  }

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      test(`the graph is accessible and scrolls in its own box in the ${theme} theme at ${width} px`, async () => {
        const { page, problems, context } = await studio.open(`${path}?view=graph`, { theme, width });
        await expect.poll(() => nodesOf(page)).toHaveLength(12);
        problems.push(...(await axeViolations(page)));
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        expect([problems, overflow]).toEqual([[], 0]);
        await context.close();
      });
    }
  }

  test('jobs, steps and child runs are connected as the definition says, each with its status', async () => {
    const { page, problems, context } = await studio.open(path);
    await page.locator('.waterfall').waitFor();
    await page.getByRole('button', { name: 'Graph', exact: true }).click();
    await expect
      .poll(() => nodesOf(page))
      .toEqual([
        'job build✓ succeeded',
        'step compile✓ succeeded',
        'step pack✓ succeeded',
        'job test:0✓ succeeded',
        'step check✓ succeeded',
        'job test:1✓ succeeded',
        'step check✓ succeeded',
        'job deploy◷ waiting',
        'step verify✓ succeeded',
        'step go◷ waiting',
        'step done◷ pending',
        'run verify✓ succeeded',
      ]);
    expect(await page.locator('.graph .edge').count()).toBe(11);
    await page.getByRole('link', { name: /run verify/ }).click();
    await page.getByRole('heading', { name: 'verify', level: 1 }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a step is selected by keyboard, and the address shows the same view and step again', async () => {
    const { page, problems, context } = await studio.open(path);
    await page.getByRole('button', { name: 'Graph', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.locator('.graph').waitFor();
    await page.keyboard.press('Tab');
    expect(await page.locator('.graph').evaluate((box) => box.matches(':focus'))).toBe(true);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Step build.pack' }).waitFor();
    const { searchParams } = new URL(page.url());
    expect([...searchParams]).toEqual([
      ['view', 'graph'],
      ['step', 'build.pack'],
    ]);
    await page.reload();
    const pressed = page.locator('.graph button[aria-pressed="true"]');
    await expect.poll(() => pressed.textContent()).toContain('pack');
    await page.getByRole('button', { name: 'Timeline' }).click();
    await page.locator('.waterfall button[aria-pressed="true"]', { hasText: 'build.pack' }).waitFor();
    expect(new URL(page.url()).search).toBe('?step=build.pack');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the graph follows an active run by itself, until its last step has ended', async () => {
    const id = await startRelease();
    const { page, problems, context } = await studio.open(`/studio/runs/${id}?view=graph`);
    await expect.poll(() => nodesOf(page)).toContain('step go◷ waiting');
    await studio.svc('workflows', 'approve', id, 'deploy.go');
    await expect.poll(() => nodesOf(page)).toContain('step done✓ succeeded');
    await expect.poll(() => page.locator('.verdict').textContent()).toContain('succeeded');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a run with more than 300 nodes stays on the timeline and says so', async () => {
    const numbers = Array.from({ length: 151 }, (_, index) => index);
    const input = JSON.stringify({ numbers });
    const { id } = await studio.svc('workflows', 'run', 'wide', '--input', input);
    const { page, problems, context } = await studio.open(`/studio/runs/${id}?view=graph`);
    await page.getByText('The graph shows at most 300 nodes, and this run has more.').waitFor();
    await page.locator('.waterfall').waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the layout library is loaded with the first graph only', async () => {
    const { page, context } = await studio.open('/studio/');
    const loaded: string[] = [];
    page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
    const hasLibrary = () => loaded.some((name) => name.includes('/graph-layout-'));
    await page.goto(studio.url + path);
    await page.locator('.waterfall').waitFor();
    expect(hasLibrary()).toBe(false);
    await page.getByRole('button', { name: 'Graph', exact: true }).click();
    await page.locator('.graph').waitFor();
    expect(hasLibrary()).toBe(true);
    await context.close();
  });
});
