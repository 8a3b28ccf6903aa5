import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

/** Compressed JavaScript of a first screen. Charts, graphs and the editor for JSON come later and do not count. */
const MAX_FIRST_BYTES = 45_000;
const LATER = /\/(?:plot|graph-layout|json-editor)-/;

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'overview of the studio', () => {
  let studio: Studio;
  let runId: string;

  beforeAll(async () => {
    studio = await startStudio();
    const { svc, platform } = studio;
    await svc('webhooks', 'provision', '@acme/orders', 'created');
    await svc('webhooks', 'send', '@acme/orders', 'created', '--data', '{"id":1}');
    await platform.svc('webhooks', 'send', '@acme/orders', 'created', '--data', '{"do":"fail"}');
    const labels = ['--label', 'customer=acme', '--label', 'env=test'];
    runId = (await svc('workflows', 'run', 'ship', '--input', '{"order":"A-17"}', ...labels)).id;
    await svc('workflows', 'run', 'ship', '--input', '{"order":"B-2"}');
    await vi.waitFor(
      async () => expect((await svc('workflows', 'runs', '--waiting-for', 'approval')).items).toHaveLength(2),
      { timeout: 20_000, interval: 100 },
    );
  });
  afterAll(() => studio?.close());

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      test(`charts and their tables are accessible in the ${theme} theme at ${width} px`, async () => {
        const { page, problems, context } = await studio.open('/studio/', { theme, width });
        await expect.poll(() => page.locator('.plot canvas').count()).toBe(2);
        for (const summary of await page.getByText('Show as a table').all()) await summary.click();
        expect(await page.getByRole('region', { name: 'Runs per hour' }).locator('tbody tr').count()).toBe(
          24,
        );
        problems.push(...(await axeViolations(page)));
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        expect([problems, overflow]).toEqual([[], 0]);
        await context.close();
      });
    }
  }

  test('the overview tells counts, waiting approvals, free disk and each service in sentences', async () => {
    const { page, problems, context } = await studio.open('/studio/');
    const { totals } = await studio.svc('webhooks', 'counts');
    await page
      .getByText(`${totals.total} deliveries in the last 24 hours, ${totals.failed} failed. The`)
      .waitFor();
    await page.getByText('2 runs in the last 24 hours, 0 failed. The').waitFor();
    const sentences = page.locator('.sentences');
    await expect.poll(() => sentences.textContent()).toMatch(/Disk: [\d.]+ of [\d.]+ GB are free/);
    const text = await sentences.textContent();
    for (const name of ['gateway', 'workflow', 'rest', 'state', 'marketplace'])
      expect(text).toContain(`Service ${name} runs.`);
    expect(await sentences.getByRole('link', { name: 'ship' }).getAttribute('href')).toBe(
      `/studio/runs/${runId}`,
    );
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a bar of the chart leads to the failures of its hour, and a row of its table also to its log', async () => {
    const { page, problems, context } = await studio.open('/studio/');
    const plot = page.locator('.plot').first();
    await plot.locator('canvas').waitFor();
    const over = plot.locator('.u-over');
    const box = (await over.boundingBox())!;
    await over.click({ position: { x: box.width - 4, y: box.height - 4 } });
    await page.waitForURL(/\/studio\/deliveries\?since=.*&until=/);
    const { searchParams } = new URL(page.url());
    const clicked = searchParams.get('since')!;
    expect(new Date(clicked).getTime() % 3600_000).toBe(0);
    await page.goBack();
    await page.getByText('Show as a table').first().click();
    const failures = page.getByRole('link', { name: 'Failures' }).first();
    const of = new URL((await failures.getAttribute('href'))!, studio.url).searchParams;
    expect(of.get('status')).toBe('failures');
    const logs = page
      .locator(`td a[href*="/studio/logs?from=${encodeURIComponent(of.get('since')!)}&"]`)
      .first();
    expect(await logs.getAttribute('href')).toContain('level=error');
    await failures.click();
    await page.waitForURL(/status=failures/);
    await expect.poll(() => page.locator('.row .status').allTextContents()).toEqual(['✕ failed']);
    expect(await page.getByLabel('Status', { exact: true }).inputValue()).toBe('failures');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('runs are filtered by label, text and time, and the address shows the same list again', async () => {
    const { page, problems, context } = await studio.open('/studio/runs');
    await expect.poll(() => page.locator('.row').count()).toBe(2);
    await page.getByLabel('Text').fill('A-17');
    await expect.poll(() => page.locator('.row').count()).toBe(1);
    await page.getByLabel('Label').fill('customer:acme');
    await page.waitForURL(/label=customer/);
    await expect
      .poll(() => page.locator('footer.same').textContent())
      .toContain('svc workflows runs --search A-17 --label customer=acme');
    await page.reload();
    await expect.poll(() => page.locator('.row').count()).toBe(1);
    await page.getByLabel('Before').fill('2020-01-01T00:00:00Z');
    await page.getByText('No run matches.').waitFor();
    await page.goto(`${studio.url}/studio/runs/${runId}`);
    await page.getByRole('link', { name: 'env:test' }).click();
    await expect.poll(() => page.locator('.row').count()).toBe(1);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the filter for failures shows failed and timed-out runs, and its command names both statuses', async () => {
    const { page, problems, context } = await studio.open('/studio/runs');
    await expect.poll(() => page.locator('.row').count()).toBe(2);
    await page.getByLabel('Status', { exact: true }).selectOption('failures');
    await page.waitForURL(/status=failures/);
    await page.getByText('No run matches.').waitFor();
    expect(await page.locator('footer.same').textContent()).toContain(
      'svc workflows runs --status failed --status timed_out',
    );
    await page.goto(`${studio.url}/studio/jobs?status=failures`);
    await page.getByText('No job matches.').waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the JavaScript of a first screen stays small, whichever screen it is', async () => {
    const { page, context } = await studio.open('/studio/', { isSignedIn: true });
    const sizes = new Map<string, number>();
    page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      if (pathname.endsWith('.js') && !LATER.test(pathname))
        sizes.set(pathname, Number(response.headers()['content-length']));
    });
    await page.locator('nav a').first().waitFor();
    const screens = await page.locator('nav a').evaluateAll((links) => links.map((link) => link.href));
    expect(screens.length).toBeGreaterThan(10);
    const tooLarge: string[] = [];
    for (const screen of screens) {
      sizes.clear();
      await page.goto(screen);
      await page.locator('h1').waitFor();
      await expect.poll(() => page.locator('.state:not(.empty)').count()).toBe(0);
      const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
      expect([sizes.size > 1, total > 0]).toEqual([true, true]);
      if (total >= MAX_FIRST_BYTES) tooLarge.push(`${screen}: ${total} bytes`);
    }
    expect(tooLarge).toEqual([]);
    await context.close();
  });

  test('a viewer of one namespace sees the counts, and nothing about the machine', async () => {
    const client = await studio.svc('clients', 'create', 'watcher');
    await studio.svc('roles', 'grant', `client:${client.clientId}`, 'viewer');
    const { page, problems, context } = await studio.open('/studio/', { isSignedIn: false });
    await page.getByLabel('Client id').fill(client.clientId);
    await page.getByLabel('Client secret').fill(client.clientSecret);
    await page.keyboard.press('Enter');
    await page.getByText('2 runs in the last 24 hours').waitFor();
    await expect.poll(() => page.locator('.state:not(.empty)').count()).toBe(0);
    expect(await page.locator('.sentences').textContent()).not.toContain('Disk');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a service that crashed is shown with its restarts and the reason of its end', async () => {
    const { services } = await studio.svc('status');
    process.kill(services.find(({ name }: { name: string }) => name === 'marketplace').pid, 'SIGKILL');
    const { page, context } = await studio.open('/studio/');
    const sentence = page.locator('.sentences li', { hasText: 'Service marketplace' });
    await expect
      .poll(() => sentence.textContent(), { timeout: 30_000 })
      .toMatch(/runs, restarted once after a crash; its last process ended at .*: .*SIGKILL/);
    await context.close();
  });
});
