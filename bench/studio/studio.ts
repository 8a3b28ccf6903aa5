import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { BROWSER_MISSING, type Studio, startStudio } from '../../test/studio/support/studio.ts';
import { seedRecords } from '../../test/support/studio-records.ts';
import { type BenchResult, median, quantile, round } from '../support/result.ts';
import { waitUntilIndexed } from '../support/text-index.ts';
import { type Interaction, NOTE_FIRST_LIST, timeOf, timeToFirstList } from './page-timer.ts';

const LOADS = 30;
const ROUNDS = 40;
const SCROLLS = 200;
const SCROLL_PX = 600;
/** Pause between interactions. Each one makes two calls of a list, and the gateway allows 600 per minute. */
const PAUSE_MS = 250;
const DELIVERIES = '/studio/deliveries';
const RUNS = '/studio/runs';

/** `--small`: a twentieth. `--no-text`: without text searches, whose index takes minutes. */
const sizes = (flags: ReadonlySet<string>) =>
  flags.has('--small') ? { deliveries: 50_000, runs: 5_000 } : { deliveries: 1_000_000, runs: 100_000 };

/** Measures the lists of the studio in a browser, with many stored deliveries and runs. */
export async function run(flags: ReadonlySet<string> = new Set()): Promise<BenchResult> {
  if (BROWSER_MISSING) throw new Error(BROWSER_MISSING);
  const counts = sizes(flags);
  const withText = !flags.has('--no-text');
  let dataDir = '';
  const studio = await startStudio({}, async (folder) => {
    dataDir = join(folder, '.svc');
    await seedRecords(dataDir, counts);
  });
  try {
    if (withText) await waitUntilIndexed(dataDir, counts.deliveries);
    const rows = [
      ...(await measureLoads(studio)),
      ...(await measureDeliveries(studio, withText)),
      ...(await measureRuns(studio)),
    ];
    const stored = `${counts.deliveries.toLocaleString('en-US')} deliveries, ${counts.runs.toLocaleString('en-US')} runs`;
    return {
      name: 'Studio',
      rows,
      note: `${stored}, SQLite, all services on one machine with the headless browser. From the input until the frame with the result is painted; a frame takes up to 17 ms. Text filters without the pause of typing. Loads: from the start of the navigation, with a new browser profile each, or with the files of the studio in the browser's cache.`,
    };
  } finally {
    await studio.close();
  }
}

function row(what: string, took: number[]): BenchResult['rows'][number] {
  const [middle, late, worst] = [median(took), quantile(took, 0.95), Math.max(...took)];
  return {
    what,
    // On a machine with other work, the least disturbed one.
    'min, ms': round(Math.min(...took)),
    'median, ms': round(middle),
    'p95, ms': round(late),
    'max, ms': round(worst),
    n: took.length,
  };
}

async function measureLoads({ open, url }: Studio): Promise<BenchResult['rows']> {
  const { context } = await open(DELIVERIES);
  const storageState = await context.storageState();
  const rows: BenchResult['rows'] = [];
  for (const path of [DELIVERIES, RUNS]) {
    const [cold, warm]: [number[], number[]] = [[], []];
    for (let n = 0; n < LOADS; n++) {
      const fresh = (await context.browser()!.newContext({ storageState })) as BrowserContext;
      const page = await fresh.newPage();
      await page.addInitScript(NOTE_FIRST_LIST);
      cold.push(await timeToFirstList(page, url + path));
      warm.push(await timeToFirstList(page, url + path));
      await fresh.close();
    }
    rows.push(row(`load ${path}, new profile`, cold), row(`load ${path}, cached files`, warm));
  }
  await context.close();
  return rows;
}

const select = (name: string, value: string): Interaction => ({
  act: `const box = document.querySelector('#filter-${name}'); box.value = '${value}'; box.dispatchEvent(new Event('change', { bubbles: true }))`,
  isDone: 'rows().length > 0 && rows()[0].id !== first',
});
const type = (
  name: string,
  value: string,
  isDone = 'rows().length > 0 && rows()[0].id !== first',
): Interaction => ({
  act: `const box = document.querySelector('#filter-${name}'); box.value = '${value}'; box.dispatchEvent(new Event('input', { bubbles: true }));
    setTimeout(() => box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })))`,
  isDone,
});
const NOTHING = "rows().length === 0 && document.querySelector('.state.empty')";

const press = (key: string, isDone: string): Interaction => ({
  act: `const before = list()?.getAttribute('aria-activedescendant');
    (list() ?? document.body).dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }))`,
  isDone,
});

/** Scrolls on, and waits until the rows at the new place are painted. At the end of what is loaded, that takes a call. */
const SCROLL: Interaction = {
  act: `const wanted = list().scrollTop + ${SCROLL_PX}`,
  isDone: `(list().scrollTop = wanted, list().scrollTop === wanted) && (() => {
    const { top, left } = list().getBoundingClientRect();
    return document.elementFromPoint(left + 20, top + 20)?.closest('.row') !== null;
  })()`,
};
const MOVED = "list().getAttribute('aria-activedescendant') !== before";

/** Repeats interactions, each followed by one that leads back. */
async function repeat(page: Page, there: Interaction, back?: Interaction): Promise<number[]> {
  const took: number[] = [];
  for (let n = 0; n < ROUNDS; n++) {
    took.push(await timeAndPause(page, there));
    if (back) await timeAndPause(page, back);
  }
  return took;
}

async function timeAndPause(page: Page, interaction: Interaction): Promise<number> {
  const took = await timeOf(page, interaction);
  await page.waitForTimeout(PAUSE_MS);
  return took;
}

async function measureScrolls(page: Page, what: string): Promise<BenchResult['rows']> {
  const took: number[] = [];
  for (let n = 0; n < SCROLLS; n++) took.push(await timeOf(page, SCROLL));
  const shown = await page.locator('.row').count();
  return [{ ...row(`${what}: scroll by ${SCROLL_PX} px`, took), 'rows in the page': shown }];
}

async function measureDeliveries({ open }: Studio, withText: boolean): Promise<BenchResult['rows']> {
  const { page, context } = await open(DELIVERIES);
  await page.locator('.row').first().waitFor();
  const rows: BenchResult['rows'] = [];
  const back: Interaction = { act: 'history.back()', isDone: 'rows().length > 0' };
  const opened = "document.querySelector('ol.steps') && !list()";
  rows.push(row('deliveries: select the next', await repeat(page, press('j', MOVED))));
  rows.push(row('deliveries: open one', await repeat(page, press('Enter', opened), back)));
  rows.push(row('deliveries: go back to the list', await backs(page, press('Enter', opened), back)));
  for (const status of ['dead', 'failed'])
    rows.push(
      row(`deliveries: status ${status}`, await repeat(page, select('status', status), select('status', ''))),
    );
  const typed: Array<[string, Interaction, Interaction]> = [
    ['plugin', type('pluginId', 'plugin-3'), type('pluginId', '')],
    ['event', type('event', 'event-1'), type('event', '')],
    ['no such plugin', type('pluginId', 'none', NOTHING), type('pluginId', '')],
  ];
  if (withText)
    typed.push(
      ['text, in one', type('search', 'ord_123457'), type('search', '')],
      ['text, in none', type('search', 'no such text', NOTHING), type('search', '')],
    );
  for (const [what, there, home] of typed)
    rows.push(row(`deliveries: ${what}`, await repeat(page, there, home)));
  rows.push(...(await measureScrolls(page, 'deliveries')));
  await context.close();
  return rows;
}

async function measureRuns({ open }: Studio): Promise<BenchResult['rows']> {
  const { page, context } = await open(RUNS);
  await page.locator('.row').first().waitFor();
  const rows: BenchResult['rows'] = [];
  const back: Interaction = { act: 'history.back()', isDone: 'rows().length > 0' };
  const opened = "document.querySelector('.waterfall') && !list()";
  rows.push(row('runs: open one', await repeat(page, press('Enter', opened), back)));
  rows.push(row('runs: status failed', await repeat(page, select('status', 'failed'), select('status', ''))));
  const typed: Array<[string, Interaction]> = [
    ['workflow', type('workflowId', 'workflow-3')],
    ['rare workflow', type('workflowId', 'rare')],
    ['no such workflow', type('workflowId', 'none', NOTHING)],
  ];
  for (const [what, there] of typed)
    rows.push(row(`runs: ${what}`, await repeat(page, there, type('workflowId', ''))));
  rows.push(...(await measureScrolls(page, 'runs')));
  await context.close();
  return rows;
}

async function backs(page: Page, there: Interaction, back: Interaction): Promise<number[]> {
  const took: number[] = [];
  for (let n = 0; n < ROUNDS; n++) {
    await timeAndPause(page, there);
    took.push(await timeAndPause(page, back));
  }
  return took;
}
