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

  const deliver = async (count: number): Promise<void> => {
    const body = { pluginId: '@acme/orders', event: 'created', data: { id: 1 } };
    for (let n = 0; n < count; n++) await api('POST', '/api/v1/webhooks/send', body);
  };
  const replays = async (): Promise<string[]> =>
    (await api('GET', '/api/v1/webhooks/deliveries?limit=200')).items.flatMap(
      ({ replayOf }: { replayOf: string | null }) => replayOf ?? [],
    );
  const startRuns = async (count: number): Promise<string[]> => {
    const ids: string[] = [];
    for (let order = 0; order < count; order++)
      ids.push(
        (await api('POST', '/api/v1/workflows/runs', { workflowId: 'ship', input: { order } })).run.id,
      );
    return ids;
  };
  const runsWith = async (status: string): Promise<AnyJson[]> =>
    (await api('GET', `/api/v1/workflows/runs?limit=1000&status=${status}`)).items;
  const notice = (page: Page) => page.locator('.bulk [role=status]').last();

  test('deliveries are chosen and replayed by keyboard alone', async () => {
    await deliver(4);
    const { page, problems, context } = await studio.open('/studio/deliveries');
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
    expect(await replays()).toEqual([]);
    await page.keyboard.press('Enter');
    await expect.poll(() => notice(page).textContent(), POLL).toBe('Replay: 2 done.');
    expect(new Set(await replays()).size).toBe(2);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('all that match are replayed, but none that arrived after the count', async () => {
    const { page, problems, context } = await studio.open('/studio/deliveries?status=succeeded');
    await expect.poll(async () => (await replays()).length, POLL).toBe(2);
    await page.getByRole('button', { name: 'Replay all that match…' }).click();
    const confirm = page.getByRole('button', { name: /^Replay \d+$/ });
    await confirm.waitFor();
    const count = Number((await confirm.textContent())!.replace('Replay ', ''));
    const before = await replays();
    await deliver(1);
    await confirm.click();
    await expect.poll(() => notice(page).textContent(), POLL).toContain(`Replay: ${count} done.`);
    const after = await replays();
    expect([after.length - before.length, new Set(after).size]).toEqual([count, after.length]);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('an action that a reload interrupts is continued, and does nothing twice', async () => {
    const ids = await startRuns(70);
    const { page, problems, context } = await studio.open('/studio/runs?status=waiting');
    await expect.poll(async () => (await runsWith('waiting')).length, POLL).toBe(70);
    // The dry run and the first batch reach the gateway, the second batch does not.
    let calls = 0;
    await page.route('**/api/v1/workflows/runs/cancel', (route) =>
      ++calls < 3 ? route.continue() : route.abort(),
    );
    await page.getByRole('button', { name: 'Cancel all that match…' }).click();
    await page.getByRole('button', { name: 'Cancel 70' }).click();
    await page.getByText('50 of 70 runs done. The gateway does not answer').waitFor();
    await page.unroute('**/api/v1/workflows/runs/cancel');
    await page.reload();
    await page.getByText('The action was interrupted.').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Continue' }).click();
    await expect.poll(() => notice(page).textContent(), POLL).toBe('Cancel: 70 done.');
    await expect.poll(async () => (await runsWith('cancelled')).length, POLL).toBe(ids.length);
    expect(problems.filter((problem) => !problem.includes('ERR_FAILED'))).toEqual([]);
    await context.close();
  });

  test('a run is run again from a step with another input, after a look at what is reused', async () => {
    const [id] = await startRuns(1);
    const approve = `/api/v1/workflows/runs/${id}/approvals/main.confirm`;
    await expect.poll(async () => (await api('POST', approve, { approved: true })).accepted, POLL).toBe(true);
    await expect.poll(async () => (await runsWith('succeeded')).length, POLL).toBe(1);
    const { page, problems, context } = await studio.open(`/studio/runs/${id}?step=main.confirm`);
    await page.getByRole('button', { name: 'Rerun from here' }).click();
    const editor = page.getByLabel('Input of the new run');
    await page.getByText('main.note, succeeded before').waitFor();
    await editor.fill('{"order": ');
    await page.getByText('The input is not valid JSON.').waitFor();
    await editor.fill('{"order": 99}');
    await page.getByText('Reused (1)').waitFor();
    await page.getByText('Runs again (1)').waitFor();
    await page.getByRole('button', { name: 'Start the new run' }).click();
    await page.waitForURL(
      (url) => url.pathname.startsWith('/studio/runs/run_') && !url.pathname.endsWith(id!),
    );
    const again = (await runsWith('waiting')).find(({ rerunOf }) => rerunOf === id);
    expect(again.input).toEqual({ order: 99 });
    expect(page.url()).toContain(again.id);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a run is exported, and leads to its neighbours in the list', async () => {
    const { page, problems, context } = await studio.open('/studio/runs');
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
      const [ended] = await runsWith('succeeded');
      const { page, problems, context } = await studio.open('/studio/runs', { theme });
      await page.getByRole('listbox', { name: 'Runs' }).focus();
      await page.keyboard.press('x');
      await page.getByText('1 runs chosen').waitFor();
      const found = await axeViolations(page);
      await page.getByRole('button', { name: 'Rerun all that match…' }).click();
      await page.getByRole('button', { name: /^Rerun \d+$/ }).waitFor();
      found.push(...(await axeViolations(page)));
      await page.goto(`${studio.url}/studio/runs/${ended.id}?rerun=main.confirm`);
      await page.getByText('Reused (1)').waitFor();
      found.push(...(await axeViolations(page)));
      expect([found, problems]).toEqual([[], []]);
      await context.close();
    },
  );
});
