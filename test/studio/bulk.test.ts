import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AnyJson } from '../support/any-json.ts';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

/** Lists may be called 600 times a minute. */
const POLL = { timeout: 20_000, interval: 200 };

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'studio: actions on many rows', () => {
  let studio: Studio;
  let api: (method: string, path: string, body?: object) => Promise<AnyJson>;

  beforeAll(async () => {
    studio = await startStudio();
    const { token } = await studio.svc('tokens', 'mint', 'tester');
    api = async (method, path, body) => {
      const response = await fetch(studio.url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      const reply = await response.json();
      if (!response.ok) throw new Error(JSON.stringify(reply));
      return reply;
    };
    await studio.svc('webhooks', 'provision', '@acme/orders', 'created');
  });
  afterAll(() => studio?.close());

  const deliver = async (count: number): Promise<string[]> => {
    const body = { pluginId: '@acme/orders', event: 'created', data: { id: 1 } };
    const ids: string[] = [];
    for (let n = 0; n < count; n++) ids.push((await api('POST', '/api/v1/webhooks/send', body)).webhookId);
    return ids;
  };
  /** Ids of the deliveries since a time that were replayed, once for each replay. */
  const replays = async (since: number): Promise<string[]> =>
    (await api('GET', `/api/v1/webhooks/deliveries?limit=200&since=${since}`)).items.flatMap(
      ({ replayOf }: { replayOf: string | null }) => replayOf ?? [],
    );
  /** Starts runs with a label of their own, by which a test finds them. */
  const startRuns = async (count: number, set: string): Promise<string[]> => {
    const ids: string[] = [];
    const start = { workflowId: 'ship', labels: { set } };
    for (let order = 0; order < count; order++)
      ids.push((await api('POST', '/api/v1/workflows/runs', { ...start, input: { order } })).run.id);
    return ids;
  };
  const runsWith = async (status: string, set: string): Promise<AnyJson[]> =>
    (await api('GET', `/api/v1/workflows/runs?limit=1000&status=${status}&label=set:${set}`)).items;
  const succeededRun = async (set: string): Promise<string> => {
    const [id] = await startRuns(1, set);
    const approve = `/api/v1/workflows/runs/${id}/approvals/main.confirm`;
    await expect.poll(async () => (await runsWith('waiting', set)).length, POLL).toBe(1);
    await api('POST', approve, { approved: true });
    await expect.poll(async () => (await runsWith('succeeded', set)).length, POLL).toBe(1);
    return id!;
  };
  const notice = (page: Page) => page.locator('.bulk [role=status]').last();

  test('deliveries are chosen and replayed by keyboard alone', async () => {
    const since = Date.now();
    await deliver(4);
    const { page, problems, context } = await studio.open(`/studio/deliveries?since=${since}`);
    await expect.poll(() => page.locator('.row').count(), POLL).toBe(4);
    await page.getByRole('listbox', { name: 'Deliveries' }).focus();
    for (const key of ['x', 'j', 'j', ' ']) await page.keyboard.press(key);
    await page.getByText('2 deliveries chosen').waitFor();
    await page.keyboard.press('x');
    await page.keyboard.press('x');
    const focused = () => page.evaluate<string>('document.activeElement.textContent');
    for (let tabs = 0; tabs < 5 && (await focused()) !== 'Replay chosen'; tabs++)
      await page.keyboard.press('Shift+Tab');
    expect(await focused()).toBe('Replay chosen');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Replay 2', exact: true }).waitFor();
    expect(await replays(since)).toEqual([]);
    await page.keyboard.press('Enter');
    await expect.poll(() => notice(page).textContent(), POLL).toBe('Replay: 2 done.');
    expect(new Set(await replays(since)).size).toBe(2);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('all that match are replayed, but none that arrived after the count', async () => {
    const since = Date.now();
    const sent = await deliver(3);
    const { page, problems, context } = await studio.open(
      `/studio/deliveries?status=succeeded&since=${since}`,
    );
    await expect.poll(() => page.locator('.row').count(), POLL).toBe(3);
    await page.getByRole('button', { name: 'Replay all that match…' }).click();
    const confirm = page.getByRole('button', { name: 'Replay 3', exact: true });
    await confirm.waitFor();
    await page.getByText(`Selection: Status: succeeded, Since: ${since}`).waitFor();
    await deliver(1);
    await confirm.click();
    await expect.poll(() => notice(page).textContent(), POLL).toContain('Replay: 3 done.');
    expect((await replays(since)).toSorted()).toEqual(sent.toSorted());
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a change of the filters drops an open question', async () => {
    await startRuns(2, 'question');
    await expect.poll(async () => (await runsWith('waiting', 'question')).length, POLL).toBe(2);
    const { page, problems, context } = await studio.open('/studio/runs?label=set:question');
    await page.locator('.row').nth(1).waitFor();
    await page.getByRole('button', { name: 'Cancel all that match…' }).click();
    await page.getByText('Selection: Label: set:question').waitFor();
    await page.getByLabel('Status', { exact: true }).selectOption('failed');
    await page.getByRole('button', { name: 'Cancel all that match…' }).waitFor();
    expect(await page.getByRole('button', { name: 'Cancel 2' }).count()).toBe(0);
    expect(await runsWith('waiting', 'question')).toHaveLength(2);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('an action that a reload interrupts is continued, and does nothing twice', async () => {
    const ids = await startRuns(70, 'reload');
    const { page, problems, context } = await studio.open('/studio/runs?status=waiting&label=set:reload');
    await expect.poll(async () => (await runsWith('waiting', 'reload')).length, POLL).toBe(70);
    // The dry run and the first batch reach the gateway, the second batch does not.
    let calls = 0;
    await page.route('**/api/v1/workflows/runs/cancel', (route) =>
      ++calls < 3 ? route.continue() : route.abort(),
    );
    await page.getByRole('button', { name: 'Cancel all that match…' }).click();
    await page.getByRole('button', { name: 'Cancel 70' }).click();
    await page.getByText('50 of 70 runs done. The gateway does not answer').waitFor();
    await page.unroute('**/api/v1/workflows/runs/cancel');
    await page.goto(`${studio.url}/studio/runs?status=failed`);
    await page.getByText('The action was interrupted.').waitFor();
    await page.getByText('Selection: Status: waiting, Label: set:reload').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Continue' }).click();
    await expect.poll(() => notice(page).textContent(), POLL).toBe('Cancel: 70 done.');
    await expect.poll(async () => (await runsWith('cancelled', 'reload')).length, POLL).toBe(ids.length);
    expect(problems.filter((problem) => !problem.includes('ERR_FAILED'))).toEqual([]);
    await context.close();
  });

  test('a run is run again from a step with another input, after a look at what is reused', async () => {
    const id = await succeededRun('again');
    const { page, problems, context } = await studio.open(`/studio/runs/${id}?step=main.confirm`);
    await page.getByRole('button', { name: 'Rerun from here' }).click();
    const editor = page.getByLabel('Input of the new run');
    await page.getByText('main.note, succeeded before').waitFor();
    await editor.fill('{"order": ');
    await page.getByText('Line 1, column 11: expected a value.').waitFor();
    await editor.fill('{"order": 99}');
    await page.getByText('Reused (1)').waitFor();
    await page.getByText('Runs again (1)').waitFor();
    await page.getByRole('button', { name: 'Start the new run' }).click();
    await page.waitForURL(
      (url) => url.pathname.startsWith('/studio/runs/run_') && !url.pathname.endsWith(id),
    );
    const again = (await runsWith('waiting', 'again')).find(({ rerunOf }) => rerunOf === id);
    expect(again.input).toEqual({ order: 99 });
    expect(page.url()).toContain(again.id);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a run is exported, and leads to its neighbours in the list', async () => {
    await startRuns(3, 'neighbours');
    const { page, problems, context } = await studio.open('/studio/runs?label=set:neighbours');
    await page.locator('.row').nth(1).click();
    await page.getByRole('link', { name: 'Next' }).waitFor();
    const address = page.url();
    await page.getByRole('link', { name: 'Previous' }).click();
    await page.waitForURL((url) => url.href !== address);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export' }).click(),
    ]);
    const exported = JSON.parse(await readFile(await download.path(), 'utf8'));
    expect(page.url()).toContain(exported.run.id);
    expect(exported.steps.length).toBeGreaterThan(0);
    expect(exported.events[0].type).toBe('run.queued');
    expect(problems).toEqual([]);
    await context.close();
  });

  test.each(['light', 'dark'] as const)(
    'questions and forms are accessible in the %s theme',
    async (theme) => {
      const ended = await succeededRun(theme);
      const { page, problems, context } = await studio.open('/studio/runs', { theme });
      await page.getByRole('listbox', { name: 'Runs' }).focus();
      await page.keyboard.press('x');
      await page.getByText('1 runs chosen').waitFor();
      const found = await axeViolations(page);
      await page.getByRole('button', { name: 'Rerun all that match…' }).click();
      await page.getByRole('button', { name: /^Rerun \d+$/ }).waitFor();
      found.push(...(await axeViolations(page)));
      await page.goto(`${studio.url}/studio/runs/${ended}?rerun=main.confirm`);
      await page.getByText('Reused (1)').waitFor();
      found.push(...(await axeViolations(page)));
      expect([found, problems]).toEqual([[], []]);
      await context.close();
    },
  );
});
