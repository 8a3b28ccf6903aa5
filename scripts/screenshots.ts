/**
 * `npm run screenshots`: starts a project with example data and writes pictures of six screens of the studio to
 * docs/images. Needs Chromium and a current build.
 */
import { cp, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { packageRoot } from '../src/kit/files/paths.ts';
import { BROWSER_MISSING, type Studio, startStudio } from '../test/studio/support/studio.ts';

const IMAGES = join(packageRoot, 'docs/images');
const MAX_IMAGE_BYTES = 150_000;
const WIDTH = 1280;
/** Time between events, so that no run waits for a free process. */
const SPACING_MS = 900;

const HANDLERS = `
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const fail = (message) => ({ exitCode: 1, error: { code: 'CARRIER_BUSY', message } });
export const received = { async execute(ctx, payload) {
  await pause(20 + (payload.amount % 90));
  if (payload.broken) throw new Error('The stock service did not answer.');
  return { accepted: payload.id };
} };
export const check = { async execute(ctx, input) { await pause(180); return { ok: true }; } };
export const pay = { async execute(ctx, input) { await pause(640); return { paid: input.amount }; } };
let calls = 0;
export const label = { async execute(ctx, input) {
  await pause(260);
  if (calls++ % 3 === 0) throw new Error('The carrier did not answer in time.');
  return { tracking: 'DE' + String(input.order).slice(-4) };
} };
`;

const COMMANDS = [
  ['check', 'Check the stock of an order'],
  ['pay', 'Charge the customer'],
  ['label', 'Print the parcel label'],
].map(([id, description]) => ({ id, handler: `shop.js#${id}`, description }));
const AUTH = { type: 'hmac', header: 'x-signature', algorithm: 'sha256', prefix: 'sha256=' };
const EVENTS = ['order.created', 'order.paid', 'refund.requested'];
const MANIFEST = {
  schema: 'svc.plugin/3',
  id: '@acme/shop',
  version: '2.4.0',
  commands: COMMANDS,
  webhooks: EVENTS.map((event) => ({ event, handler: 'shop.js#received', auth: AUTH })),
};

/** An expression of a workflow. */
const cel = (text: string): string => `\${{ ${text} }}`;
const step = (id: string, more: object) => ({ id, uses: `@acme/shop/${id}`, ...more });
const WORKFLOWS = [
  {
    id: 'fulfil-order',
    jobs: {
      prepare: {
        steps: [
          step('check', { with: { order: cel('input.order') } }),
          step('pay', { with: { amount: cel('input.amount') } }),
        ],
      },
      ship: {
        needs: ['prepare'],
        steps: [
          step('label', {
            with: { order: cel('input.order') },
            retry: { maxAttempts: 4, initialMs: 300 },
          }),
          { id: 'cooling', uses: 'wait', with: { ms: 700 } },
        ],
      },
    },
  },
  {
    id: 'refund',
    jobs: {
      main: {
        steps: [
          step('check', { with: { order: cel('input.order') } }),
          {
            id: 'confirm',
            uses: 'approval',
            with: { message: `Refund ${cel('input.amount')} EUR of order ${cel('input.order')}?` },
          },
        ],
      },
    },
  },
  {
    id: 'nightly-report',
    on: { schedule: [{ cron: '0 3 * * *' }] },
    jobs: { main: { steps: [{ id: 'totals', uses: 'set', with: { orders: 412 } }] } },
  },
];

async function prepare(folder: string): Promise<void> {
  const plugin = join(folder, 'plugins/shop');
  await mkdir(plugin, { recursive: true });
  await writeFile(join(plugin, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(plugin, 'package.json'), JSON.stringify({ name: '@acme/shop', type: 'module' }));
  await writeFile(join(plugin, 'shop.js'), HANDLERS);
  for (const workflow of WORKFLOWS)
    await writeFile(join(folder, 'workflows', `${workflow.id}.yaml`), JSON.stringify(workflow));
  await cp(join(packageRoot, 'examples/plugins/github'), join(folder, 'plugins/github'), { recursive: true });
}

/** Delivers webhooks and starts runs. Returns the ids that the pictures of details show. */
async function fill({ svc, url }: Studio): Promise<{ delivery: string; run: string }> {
  for (const event of EVENTS) await svc('webhooks', 'provision', '@acme/shop', event);
  const { token } = await svc('tokens', 'mint', 'shop-front');
  const call = async (path: string, body: unknown) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as { run: { id: string } };
  };
  const ended: string[] = [];
  for (let n = 0; n < 24; n++) {
    const data = {
      id: `ord_${48213 + n}`,
      amount: 19 + ((n * 37) % 180),
      currency: 'EUR',
      broken: n % 9 === 4,
    };
    const event = EVENTS[n % 5 === 3 ? 2 : n % 2]!;
    await call('/api/v1/webhooks/send', { pluginId: '@acme/shop', event, data });
    const workflowId = n % 6 === 3 ? 'refund' : n % 8 === 5 ? 'nightly-report' : 'fulfil-order';
    const { run } = await call('/api/v1/workflows/runs', {
      workflowId,
      input: { order: 48213 + n, amount: data.amount },
    });
    if (workflowId === 'fulfil-order') ended.push(run.id);
    await new Promise((resolve) => setTimeout(resolve, SPACING_MS));
    // A sender with an old secret.
    if (n % 7 === 2)
      await fetch(`${url}/webhooks/%40acme%2Fshop/order.created`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-svc-namespace': 'default',
          'x-signature': `sha256=${'5c'.repeat(32)}`,
        },
        body: JSON.stringify(data),
      });
  }
  const run = await retried(svc, ended);
  const { items } = await svc('webhooks', 'deliveries', '--status', 'refused');
  return { delivery: items[0].webhookId, run };
}

/** Waits until the runs have ended, and returns one with a step that was tried again. */
async function retried(svc: Studio['svc'], ids: readonly string[]): Promise<string> {
  let found = ids[0]!;
  for (const id of ids) {
    let shown = await svc('workflows', 'show', id);
    for (; shown.run.finishedAt === null; shown = await svc('workflows', 'show', id))
      await new Promise((resolve) => setTimeout(resolve, 500));
    if (shown.steps?.some(({ attempts }: { attempts: number }) => attempts > 1)) found = id;
  }
  return found;
}

async function picture(page: Page, name: string, address: string, ready: string): Promise<void> {
  await page.goto(address);
  await page.locator(ready).first().waitFor();
  const path = join(IMAGES, `studio-${name}.png`);
  await page.screenshot({ path, animations: 'disabled' });
  const { size } = await stat(path);
  if (size > MAX_IMAGE_BYTES) throw new Error(`${path} has ${size} bytes, more than ${MAX_IMAGE_BYTES}.`);
  console.log(`${path}: ${Math.round(size / 1024)} KiB`);
}

if (BROWSER_MISSING) throw new Error(BROWSER_MISSING);
await mkdir(IMAGES, { recursive: true });
const studio = await startStudio({}, prepare);
try {
  const { delivery, run } = await fill(studio);
  const { page } = await studio.open('/studio/', { width: WIDTH });
  await page.setViewportSize({ width: WIDTH, height: 800 });
  const at = (path: string): string => `${studio.url}/studio/${path}`;
  await picture(page, 'deliveries', at('deliveries'), '.row');
  await picture(page, 'delivery', at(`deliveries/${delivery}`), 'ol.steps');
  await picture(page, 'runs', at('runs'), '.row');
  await picture(page, 'run', at(`runs/${run}?step=ship.label`), '.waterfall svg');
  await picture(page, 'inbox', at('inbox'), '.card button');
  await picture(page, 'overview', at(''), 'canvas');
} finally {
  await studio.close();
}
