import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startStockApi, tracedConfig, writeTracedProject } from '../support/traced-project.ts';
import { BROWSER_MISSING, pageFaults, type Studio, startStudio } from './support/studio.ts';

const POLL = { timeout: 30_000, interval: 300 };

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'traces and events in the studio', () => {
  let studio: Studio;
  let api: Awaited<ReturnType<typeof startStockApi>>;
  let delivery: { webhookId: string; traceId: string };
  const tracePath = () => `/studio/traces/${delivery.traceId}`;

  beforeAll(async () => {
    api = await startStockApi();
    studio = await startStudio(tracedConfig(api.host), (folder) => writeTracedProject(folder, api.host));
    const { svc } = studio;
    await svc('webhooks', 'provision', '@acme/shop', 'paid');
    const { webhookId } = await svc('webhooks', 'send', '@acme/shop', 'paid', '--data', '{"id":"lost"}');
    delivery = await svc('webhooks', 'show', webhookId);
    await vi.waitFor(async () => {
      const { spans } = await svc('traces', 'show', delivery.traceId);
      expect(JSON.stringify(spans)).toContain('the order is lost');
    }, POLL);
  });
  afterAll(async () => {
    await studio?.close();
    api?.close();
  });

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      test(`traces and events are accessible and complete in the ${theme} theme at ${width} px`, async () => {
        const { page, problems, context } = await studio.open('/studio/', { theme, width });
        for (const path of [tracePath(), '/studio/events', '/studio/traces/nothing-of-the-kind']) {
          await page.goto(studio.url + path);
          await page.locator('h1').first().waitFor();
          await expect.poll(() => page.locator('.state:not(.empty):not(.failure)').count()).toBe(0);
          problems.push(...(await pageFaults(page)).map((fault) => `${path}: ${fault}`));
        }
        expect(problems).toEqual([]);
        await context.close();
      });
    }
  }

  test('a person follows a failed order from its delivery to the failed step and its log', async () => {
    const { page, problems, context } = await studio.open(`/studio/deliveries/${delivery.webhookId}`);
    await page.getByRole('link', { name: delivery.traceId }).click();
    await page.getByRole('heading', { name: 'Trace', level: 1 }).waitFor();
    const rows = page.locator('.waterfall.spans button');
    await expect.poll(() => rows.count(), POLL).toBeGreaterThan(12);
    // The innermost failure is selected first.
    await expect
      .poll(() => page.locator('.split .error').first().textContent())
      .toContain('the order is lost');
    await rows.filter({ hasText: 'delivery @acme/shop paid' }).click();
    await expect.poll(() => page.url()).toContain('?span=');
    await expect.poll(() => page.getByLabel('Log lines of the span').textContent(), POLL).toContain('paid');
    await rows.filter({ hasText: 'run fulfil' }).click();
    await page.getByRole('link', { name: /^run_/ }).click();
    await page.getByRole('heading', { name: 'fulfil', level: 1 }).waitFor();
    await page.getByRole('link', { name: delivery.webhookId }).waitFor();
    await page.getByRole('link', { name: delivery.traceId }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  test('new events appear by themselves, until a person pauses them', async () => {
    const { page, problems, context } = await studio.open('/studio/events?type=workflow.run.completed');
    await page.getByRole('button', { name: 'Pause (live)' }).waitFor();
    const rows = page.locator('tbody tr');
    await studio.svc('workflows', 'run', 'fulfil', '--input', '{"order":"o-1"}');
    await expect.poll(() => rows.count(), POLL).toBe(1);
    await page.getByRole('button', { name: 'Pause (live)' }).click();
    await studio.svc('workflows', 'run', 'fulfil', '--input', '{"order":"o-2"}');
    await expect
      .poll(async () => (await studio.svc('events', 'list', '--type', 'workflow.run.completed')).total, POLL)
      .toBe(2);
    expect(await rows.count()).toBe(1);
    await page.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(() => rows.count(), POLL).toBe(2);
    expect(await page.getByRole('searchbox', { name: 'Type' }).inputValue()).toBe('workflow.run.completed');
    await rows.first().getByRole('link', { name: 'trace' }).click();
    await page.getByRole('heading', { name: 'Trace', level: 1 }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });
});
