import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RARE_EVERY, seedOutgoing } from '../support/outgoing-records.ts';
import { openPage } from './support/people.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const STORED = 10_000;
const RARE = STORED / RARE_EVERY;
const PAGE_ROWS = 100;
/** Rows of a virtual list in view at the height of the tests, and those that are kept above and below. */
const MAX_ROWS = 60;
const ROW_HEIGHT = 44;

const newest = (count: number, text: (n: number) => string): string[] =>
  Array.from({ length: count }, (_, index) => text(STORED - 1 - index));
const rare = (text: (n: number) => string): string[] =>
  Array.from({ length: RARE }, (_, index) => text((RARE - 1 - index) * RARE_EVERY + 77));

/** Lists of tables, with the link text and the filter of each. */
const TABLES = [
  {
    ...{ name: 'endpoints', textOf: (n: number) => `https://receiver-${n}.example.com/hooks` },
    filter: (page: Page) => page.getByLabel('Disabled', { exact: true }).selectOption('true'),
    query: 'disabled=true',
  },
  {
    ...{ name: 'alerts', textOf: (n: number) => `Run ${n} failed` },
    async filter(page: Page) {
      await page.getByLabel('Rule', { exact: true }).fill('rare');
      await page.keyboard.press('Enter');
    },
    query: 'rule=rare',
  },
];

describe.skipIf(BROWSER_MISSING)(
  BROWSER_MISSING ?? `lists of ${STORED} endpoints, messages and alerts`,
  () => {
    let studio: Studio;

    beforeAll(async () => {
      studio = await startStudio({}, (folder) => seedOutgoing(join(folder, '.svc'), STORED));
    }, 120_000);
    afterAll(() => studio?.close());

    /** Opens a list. `calls` are the queries with which the page has read it, without the repeated ones of the first page. */
    async function open(name: string) {
      const { page, problems } = await openPage(studio, '/studio/');
      const calls: string[] = [];
      let first: string | undefined;
      page.on('request', (request) => {
        const { pathname, search } = new URL(request.url());
        if (pathname !== `/api/v1/${name}`) return;
        if (search !== first) calls.push(search);
        first ??= search;
      });
      await page.goto(`${studio.url}/studio/${name}`);
      return { page, problems, calls };
    }

    test('the list of messages is read to its end with few rows, and each page is one call', async () => {
      const { page, problems, calls } = await open('messages');
      const rows = page.locator('.row');
      await rows.first().waitFor();
      await page.getByRole('button', { name: 'Pause (live)' }).click();
      expect(await rows.first().textContent()).toContain(`order.number-${STORED - 1}`);
      const loaded = () =>
        page.evaluate<number>(
          `Math.floor(document.querySelector('.virtual').scrollHeight / ${ROW_HEIGHT} / ${PAGE_ROWS}) * ${PAGE_ROWS}`,
        );
      for (let before = PAGE_ROWS; before < STORED; before += PAGE_ROWS) {
        await page.evaluate(`document.querySelector('.virtual').scrollTop += 1e6`);
        await expect.poll(loaded).toBeGreaterThan(before);
        expect(await rows.count()).toBeLessThan(MAX_ROWS);
      }
      expect(await loaded()).toBe(STORED);
      await page.evaluate(`document.querySelector('.virtual').scrollTop += 1e6`);
      await expect.poll(() => rows.last().textContent()).toContain('order.number-0');
      expect(await rows.count()).toBeLessThan(MAX_ROWS);
      expect(calls).toHaveLength(STORED / PAGE_ROWS);
      expect(new Set(calls).size).toBe(calls.length);
      expect(problems).toEqual([]);
    });

    test('dead letters among the messages are found with one call', async () => {
      const { page, problems, calls } = await open('messages');
      await page.locator('.row').first().waitFor();
      await page.getByRole('link', { name: 'Dead letters' }).click();
      await expect
        .poll(() => page.locator('.row .name').allTextContents())
        .toEqual(rare((n) => `order.number-${n}`));
      expect(new Set(calls.filter((search) => search.includes('status=dead'))).size).toBe(1);
      await page.locator('.row').last().click();
      await page.getByRole('heading', { name: 'order.number-77', level: 1 }).waitFor();
      await page.locator('.verdict', { hasText: '1 dead' }).waitFor();
      expect(problems).toEqual([]);
    });

    test.each(TABLES)(
      'the table of $name has the rows of the pages that were asked for',
      async ({ name, textOf }) => {
        const { page, problems, calls } = await open(name);
        const rows = page.locator('tbody tr');
        for (let count = PAGE_ROWS; count <= 5 * PAGE_ROWS; count += PAGE_ROWS) {
          await expect.poll(() => rows.count()).toBe(count);
          expect(await page.locator('tbody a').allTextContents()).toEqual(newest(count, textOf));
          await page.getByRole('button', { name: 'Show more' }).click();
        }
        await expect.poll(() => rows.count()).toBe(6 * PAGE_ROWS);
        // The first page is read again while the table is shown. The others remain.
        await page.waitForResponse((response) => new URL(response.url()).pathname === `/api/v1/${name}`);
        await page.waitForResponse((response) => new URL(response.url()).pathname === `/api/v1/${name}`);
        expect(await page.locator('tbody a').allTextContents()).toEqual(newest(6 * PAGE_ROWS, textOf));
        expect(calls).toHaveLength(6);
        expect(new Set(calls).size).toBe(6);
        expect(problems).toEqual([]);
      },
    );

    test.each(TABLES)('rare $name are found with one call', async ({ name, textOf, filter, query }) => {
      const { page, problems, calls } = await open(name);
      await page.locator('tbody tr').first().waitFor();
      await filter(page);
      await expect.poll(() => page.locator('tbody a').allTextContents()).toEqual(rare(textOf));
      expect(new Set(calls.filter((search) => search.includes(query))).size).toBe(1);
      expect(calls.filter((search) => search.includes('cursor='))).toEqual([]);
      expect(await page.getByRole('button', { name: 'Show more' }).count()).toBe(0);
      await page.locator('tbody a').last().click();
      await page.getByRole('heading', { name: textOf(77), level: 1 }).waitFor();
      expect(problems).toEqual([]);
    });
  },
);
