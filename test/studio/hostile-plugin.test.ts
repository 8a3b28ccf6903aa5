import { fileURLToPath } from 'node:url';
import type { Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const HOSTILE = fileURLToPath(new URL('../fixtures/projects/hostile/plugins/hostile', import.meta.url));
const ROUTES = '/api/v1/plugins/hostile';

/** What a script of the page could do, if the page let it run. Returns the outcome of each attempt. */
const ATTEMPTS = `(async () => {
  const outcome = async (attempt) => {
    try {
      const result = await attempt();
      return result instanceof Response ? 'status ' + result.status : String(result);
    } catch {
      return 'refused';
    }
  };
  const mint = { method: 'POST', credentials: 'include', body: '{"hostId":"thief"}' };
  return {
    csrfToken: await outcome(() => fetch('/studio/session', { credentials: 'include' })),
    tokens: await outcome(() => fetch('/api/v1/tokens', { credentials: 'include' })),
    mint: await outcome(() => fetch('/api/v1/tokens', mint)),
    cookie: await outcome(() => document.cookie),
    storage: await outcome(() => localStorage.length),
    worker: await outcome(() => navigator.serviceWorker.register('${ROUTES}/worker.js')),
    opener: await outcome(() => window.opener),
    origin: await outcome(() => window.origin),
  };
})()`;

const HARMLESS = {
  ...{ csrfToken: 'refused', tokens: 'refused', mint: 'refused' },
  ...{ cookie: 'refused', storage: 'refused', worker: 'refused' },
  ...{ opener: 'null', origin: 'null' },
};

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'a hostile plugin', () => {
  let studio: Studio;

  beforeAll(async () => {
    studio = await startStudio({
      plugins: ['./plugins/*', HOSTILE],
      gateway: { publicPluginRoutes: true },
    });
    await studio.svc('webhooks', 'provision', 'hostile', 'page', '--namespace-in-url');
  });
  afterAll(() => studio?.close());

  /** Everything that changes when a page acts in the name of the signed-in person. */
  async function changes() {
    const { items } = await studio.svc('audit', 'list');
    return (items as Array<{ action: string }>)
      .map(({ action }) => action)
      .filter((action) => !['webhook.provision', 'studio.sign_in', 'delivery.replay'].includes(action));
  }

  /** Opens an address in a signed-in browser, as a link of the studio or of a message would. */
  async function openSignedIn(path: string) {
    const { page: opener, context } = await studio.open('/studio/');
    await opener.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    const opened = context.waitForEvent('page');
    await opener.evaluate(`void window.open(${JSON.stringify(studio.url + path)})`);
    const page = await opened;
    const requests: Request[] = [];
    page.on('request', (request) => requests.push(request));
    await page.goto(studio.url + path);
    return { opener, page, context, requests };
  }

  test('HTML of a route runs no script, sends no form, frames nothing and moves nowhere', async () => {
    const { page, opener, context, requests } = await openSignedIn(`${ROUTES}/page`);
    expect(await page.title()).toBe('innocent');
    await page.getByRole('button', { name: 'Win a prize' }).click();
    await page.getByRole('link', { name: 'Read more' }).click();
    expect(await page.evaluate(ATTEMPTS)).toEqual(HARMLESS);
    expect([await page.title(), new URL(page.url()).pathname]).toEqual(['innocent', `${ROUTES}/page`]);
    for (const request of requests.filter((each) => !each.url().endsWith('/page'))) {
      const failure = request.failure()?.errorText ?? (await request.allHeaders()).cookie;
      expect([request.method(), request.url(), failure]).toEqual([
        expect.anything(),
        expect.anything(),
        'csp',
      ]);
    }
    expect(new URL(opener.url()).pathname).toBe('/studio/');
    expect(await context.cookies()).toMatchObject([{ httpOnly: true, sameSite: 'Strict' }]);
    expect(await changes()).toEqual([]);
    await opener.reload();
    await opener.getByRole('button', { name: 'Sign out' }).waitFor();
    await context.close();
  });

  test('a picture of a route runs no script when it is opened', async () => {
    const { page, context } = await openSignedIn(`${ROUTES}/picture`);
    expect(await page.evaluate('document.documentElement.id')).toBe('');
    expect(await page.evaluate(ATTEMPTS)).toEqual(HARMLESS);
    await context.close();
  });

  test('the answer of a webhook handler is shown as text, also when a form of another site calls it', async () => {
    const { page, context } = await openSignedIn(`${ROUTES}/text`);
    await page.goto('about:blank');
    await page.setContent(
      `<form method="post" enctype="text/plain" action="${studio.url}/webhooks/hostile/page?namespace=default">
        <input name='{"a":"' value='"}'><button>Send</button></form>`,
    );
    await page.getByRole('button', { name: 'Send' }).click();
    await page.waitForURL(/\/webhooks\/hostile\/page/);
    expect(await page.locator('body').textContent()).toContain('"status":"ok"');
    expect(await page.locator('form, iframe, script').count()).toBe(0);
    expect(await page.evaluate(ATTEMPTS)).toEqual(HARMLESS);
    expect(await changes()).toEqual([]);
    await context.close();
  });

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      test(`the studio shows what the plugin says as text (${theme}, ${width} px)`, async () => {
        const response = await fetch(`${studio.url}/webhooks/hostile/page?namespace=default`, {
          method: 'POST',
          body: '{"a":"<b>x</b>"}',
        });
        const webhookId = response.headers.get('x-webhook-id');
        const { page, problems, context } = await studio.open('/studio/plugins/hostile', { theme, width });
        await page.getByText("<script>document.title = 'taken over'</script>").waitFor();
        const route = page.locator('details', { hasText: `${ROUTES}/page` });
        await route.locator('summary').click();
        await route.getByRole('button', { name: 'Call' }).click();
        await route.locator('pre', { hasText: '<script src=' }).waitFor();
        expect(await axeViolations(page)).toEqual([]);
        await page.goto(`${studio.url}/studio/deliveries/${webhookId}`);
        await page.locator('pre', { hasText: 'Win a prize' }).waitFor();
        expect(await page.title()).not.toBe('taken over');
        expect(await axeViolations(page)).toEqual([]);
        expect(problems).toEqual([]);
        await context.close();
      });
    }
  }
});
