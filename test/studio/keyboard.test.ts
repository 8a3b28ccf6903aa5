import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { tabTo } from './support/keyboard.ts';
import { BROWSER_MISSING, type Studio, type StudioPage, startStudio } from './support/studio.ts';

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'the studio without a mouse', () => {
  let studio: Studio;

  beforeAll(async () => {
    studio = await startStudio();
    await studio.svc('webhooks', 'provision', '@acme/orders', 'created');
    for (const data of ['{"id":1}', '{"do":"throw"}'])
      await studio.svc('webhooks', 'send', '@acme/orders', 'created', '--data', data).catch(() => {});
  }, 120_000);
  afterAll(() => studio?.close());

  async function open(path: string): Promise<StudioPage> {
    const opened = await studio.open(path);
    onTestFinished(() => opened.context.close());
    await opened.page.locator('h1').waitFor();
    return opened;
  }
  const start = (order: number) =>
    studio.svc('workflows', 'run', 'ship', '--input', JSON.stringify({ order }));
  const statusOf = async (runId: string) => (await studio.svc('workflows', 'show', runId)).run.status;

  test('deliveries are filtered and opened, and one is replayed on its own screen', async () => {
    const { page, problems } = await open('/studio/deliveries');
    await page.locator('.row').nth(1).waitFor();
    await tabTo(page, 'Skip to content');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Status');
    await page.keyboard.type('failed');
    await page.waitForURL(/status=failed/);
    await expect.poll(() => page.locator('.row .status').allTextContents()).toEqual(['✕ failed']);
    await tabTo(page, 'Event');
    await page.keyboard.type('created');
    await page.keyboard.press('Enter');
    await page.waitForURL(/event=created/);
    await page.locator('.row').waitFor();
    await tabTo(page, 'Deliveries');
    await page.keyboard.press('Enter');
    await page.waitForURL(/deliveries\/[\w-]+$/);
    await page.getByRole('heading', { name: 'Attempts' }).or(page.getByText('Headers')).first().waitFor();
    await page.getByRole('list', { name: 'Log of the delivery' }).waitFor();
    const opened = page.url();
    await tabTo(page, 'Replay');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.href !== opened);
    await expect.poll(() => page.locator('.facts').textContent()).toContain('replay');
    expect(problems).toEqual([]);
  });

  test('a run is found, its step selected, and the run is cancelled and started again', async () => {
    const { id } = await start(1);
    const { page, problems } = await open('/studio/runs');
    await page.locator('.row').first().waitFor();
    await tabTo(page, 'Status');
    await page.keyboard.type('waiting');
    await page.waitForURL(/status=waiting/);
    await page.locator('.row').first().waitFor();
    await tabTo(page, 'Runs');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/studio/runs/${id}`);
    await page.locator('.waterfall').waitFor();
    await tabTo(page, /main\.note$/);
    await page.keyboard.press('Enter');
    await page.waitForURL(/step=main\.note/);
    await tabTo(page, 'Cancel', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => statusOf(id)).toBe('cancelled');
    await page.locator('.verdict .status', { hasText: 'cancelled' }).waitFor();
    await tabTo(page, 'Run again');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => !url.pathname.endsWith(id));
    expect(problems).toEqual([]);
  });

  test('links and Back keep the namespace that an administrator chose', async () => {
    const { page, problems } = await open('/studio/runs');
    const namespace = page.getByLabel('Namespace');
    const own = await namespace.inputValue();
    await namespace.fill('another');
    await namespace.press('Enter');
    await page.waitForURL(/runs\?namespace=another/);
    const [tab] = await Promise.all([
      page.context().waitForEvent('page'),
      page
        .getByRole('link', { name: 'Plugins', exact: true })
        .first()
        .click({ modifiers: ['Control'] }),
    ]);
    await tab.waitForURL(/plugins\?namespace=another/);
    await page.goBack();
    await expect.poll(() => page.getByLabel('Namespace').inputValue()).toBe(own);
    expect(new URL(page.url()).search).toBe('');
    await page.goForward();
    await expect.poll(() => page.getByLabel('Namespace').inputValue()).toBe('another');
    expect(problems).toEqual([]);
  });

  test('a waiting run is approved in the inbox, with a comment', async () => {
    const { id } = await start(2);
    const { page, problems } = await open('/studio/inbox');
    const card = page.locator('.card', { has: page.locator(`a[href="/studio/runs/${id}"]`) });
    await card.getByRole('button', { name: 'Approve' }).waitFor();
    // Runs that wait longer come first.
    await page.locator(`[id^="comment-${id}"]`).evaluate((input) => input.scrollIntoView());
    for (;;) {
      await tabTo(page, 'Comment');
      const isOfRun = await page.evaluate<boolean>(`document.activeElement.id.startsWith('comment-${id}')`);
      if (isOfRun) break;
    }
    await page.keyboard.type('Checked');
    await tabTo(page, 'Approve');
    await page.keyboard.press('Enter');
    await expect.poll(() => statusOf(id)).toBe('succeeded');
    const steps = await studio.svc('workflows', 'show', id);
    expect(JSON.stringify(steps)).toContain('Checked');
    expect(problems).toEqual([]);
  });
});
