import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { seedRecords } from '../support/studio-records.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { BROWSER_MISSING, type Studio, type StudioPage, startStudio } from './support/studio.ts';

const STORED = { deliveries: 12_000, runs: 25_000 };
/** Rows in view at the height of the tests, and those that are kept above and below. */
const MAX_ROWS = 60;
const PAGE_ROWS = 200;
const WEBHOOK = { pluginId: '@acme/orders', event: 'created' };

/** Paths of the lists that a page has called since the last reading. */
function callsOf(page: Page): () => string[] {
  let calls: string[] = [];
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith('/api/') && !pathname.endsWith('/stream')) calls.push(pathname + search);
  });
  return () => {
    const seen = calls;
    calls = [];
    return seen;
  };
}

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'lists of the studio', () => {
  let studio: Studio;
  let token: string;

  beforeAll(async () => {
    studio = await startStudio({}, (folder) => seedRecords(join(folder, '.svc'), STORED));
    await studio.svc('webhooks', 'provision', WEBHOOK.pluginId, WEBHOOK.event);
    ({ token } = await studio.svc('tokens', 'mint', 'sender'));
  }, 120_000);
  afterAll(() => studio?.close());

  async function open(path: string, options = {}): Promise<StudioPage> {
    const opened = await studio.open(path, options);
    onTestFinished(() => opened.context.close());
    return opened;
  }

  /** Delivers samples one after another and returns their ids. */
  async function deliver(count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) {
      const response = await fetch(`${studio.url}/api/v1/webhooks/send`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...WEBHOOK, data: { n } }),
      });
      const { webhookId } = (await response.json()) as { webhookId: string };
      ids.push(webhookId);
    }
    return ids;
  }

  const rowIds = (page: Page): Promise<string[]> =>
    page.evaluate<string[]>(`[...document.querySelectorAll('.row')].map(({ id }) => id.replace('row-', ''))`);
  const scrollToEnd = (page: Page): Promise<unknown> =>
    page.evaluate(`document.querySelector('.virtual').scrollTop += 1e6`);

  test.each(['deliveries', 'runs'])(
    'the list of %s keeps few rows, and each page is one call',
    async (name) => {
      const { page, problems } = await open(`/studio/${name}`);
      await page.locator('.row').first().waitFor();
      // The stream of deliveries has begun, and with it the second reading of the first page.
      if (name === 'deliveries') await page.getByRole('button', { name: 'Pause (live)' }).waitFor();
      const calls = callsOf(page);
      const height = () => page.evaluate<number>(`document.querySelector('.virtual').scrollHeight`);
      for (let pages = 1; pages < 6; pages++) {
        const before = await height();
        await scrollToEnd(page);
        await expect.poll(height).toBeGreaterThan(before);
        expect(await page.locator('.row').count()).toBeLessThan(MAX_ROWS);
      }
      const lists = calls().filter((each) => each.includes(`limit=${PAGE_ROWS}`) && each.includes('cursor='));
      expect(lists.length).toBeLessThanOrEqual(6);
      expect(new Set(lists).size).toBe(lists.length);
      expect(problems).toEqual([]);
    },
  );

  test('a filter is one call, and rare or missing things are found without further ones', async () => {
    const { page } = await open('/studio/runs');
    await page.locator('.row').first().waitFor();
    const calls = callsOf(page);
    await page.getByLabel('Status', { exact: true }).selectOption('failed');
    await expect.poll(() => page.locator('.row').first().textContent()).toContain('carrier');
    expect(calls()).toHaveLength(1);
    await page.getByLabel('Status', { exact: true }).selectOption('');
    await page.getByLabel('Workflow', { exact: true }).fill('rare');
    await page.keyboard.press('Enter');
    // One of 5,000 runs belongs to this workflow.
    await expect.poll(() => page.locator('.row').allTextContents()).toHaveLength(5);
    expect(calls().filter((call) => call.includes('workflowId=rare'))).toHaveLength(1);
    await page.getByLabel('Workflow', { exact: true }).fill('no-such-workflow');
    await page.keyboard.press('Enter');
    await page.locator('.state.empty').waitFor();
    expect(calls()).toHaveLength(1);
  });

  test('a list whose connection is cut shows each delivery exactly once', async () => {
    const { hostname, port } = new URL(studio.url);
    const proxy = await TcpProxy.open({ host: hostname, port: Number(port) });
    onTestFinished(() => proxy.close());
    const { page } = await open('/studio/deliveries?pluginId=%40acme%2Forders', {
      through: `http://127.0.0.1:${proxy.port}`,
    });
    const live = page.getByRole('button', { name: 'Pause (live)' });
    await live.waitFor();
    const before = (await rowIds(page)).toReversed();
    const sent = [...before, ...(await deliver(3))];
    await expect.poll(() => rowIds(page)).toEqual(sent.toReversed());

    for (let cuts = 0; cuts < 3; cuts++) {
      proxy.cut();
      await page.getByRole('button', { name: 'Pause (connecting)' }).waitFor();
      sent.push(...(await deliver(2)));
      proxy.mend();
      // These arrive while the page connects again.
      sent.push(...(await deliver(2)));
      await expect.poll(() => rowIds(page)).toEqual(sent.toReversed());
    }
    await live.waitFor();
  });

  test('a paused list resumes where it stopped', async () => {
    const { page } = await open('/studio/deliveries?pluginId=%40acme%2Forders');
    const live = page.getByRole('button', { name: 'Pause (live)' });
    await live.waitFor();
    const [first] = await deliver(1);
    await expect.poll(async () => (await rowIds(page))[0]).toBe(first);
    const before = await rowIds(page);
    const resumed = page.waitForRequest((request) => request.headers()['last-event-id'] !== undefined);
    await live.click();
    const missed = await deliver(3);
    expect(await rowIds(page)).toEqual(before);
    await page.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(() => rowIds(page)).toEqual([...missed.toReversed(), ...before]);
    expect((await resumed).url()).toContain('/deliveries/stream');
  });

  test('the selected delivery stays selected when another one arrives above it', async () => {
    const { page } = await open('/studio/deliveries?pluginId=%40acme%2Forders');
    await page.getByRole('button', { name: 'Pause (live)' }).waitFor();
    const [first] = await deliver(1);
    await expect.poll(async () => (await rowIds(page))[0]).toBe(first);
    await page.getByRole('listbox', { name: 'Deliveries' }).focus();
    const [second] = await deliver(1);
    await expect.poll(async () => (await rowIds(page))[0]).toBe(second);
    expect(await page.locator('.row[aria-selected=true]').getAttribute('id')).toBe(`row-${first}`);
    await page.keyboard.press('r');
    await page.getByText(`Delivery ${first} is replayed.`).waitFor();
  });

  test('two text filters typed one after the other both take effect', async () => {
    const { page } = await open('/studio/deliveries');
    await page.locator('.row').first().waitFor();
    await page.getByLabel('Plugin', { exact: true }).fill('@acme/orders');
    await page.getByLabel('Event', { exact: true }).fill('created');
    await page.waitForURL((url) => url.search.includes('event=created'));
    expect(new URL(page.url()).searchParams.get('pluginId')).toBe('@acme/orders');
  });

  test('a delivery that arrives while the page opens is shown', async () => {
    const { page } = await open('/studio/');
    // The list is read, and the delivery arrives before its stream begins.
    let late: string[] = [];
    await page.route('**/deliveries/stream*', async (route) => {
      late = await deliver(1);
      await route.continue();
    });
    await page.getByRole('link', { name: 'Deliveries', exact: true }).first().click();
    await expect.poll(() => late).toHaveLength(1);
    await expect.poll(async () => (await rowIds(page))[0]).toBe(late[0]);
  });
});
