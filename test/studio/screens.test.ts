import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPage } from './support/people.ts';
import { axeViolations, BROWSER_MISSING, pageFaults, type Studio, startStudio } from './support/studio.ts';

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'studio', () => {
  let studio: Studio;
  let paths: string[];

  beforeAll(async () => {
    studio = await startStudio();
    const { svc } = studio;
    await svc('webhooks', 'provision', '@acme/orders', 'created');
    await svc('webhooks', 'send', '@acme/orders', 'created', '--data', '{"id":1}');
    const { items } = await svc('webhooks', 'deliveries');
    const run = await svc('workflows', 'run', 'ship', '--input', '{"order":1}');
    await svc('sources', 'create', 'hooks', '--auth', '{"type":"token"}');
    await svc('sources', 'connect', 'hooks', '--queue', 'hooks', '--filter', 'body.n > 1');
    await svc('queues', 'put', 'mail', '{"to":"ada"}', '--id', 'first');
    paths = [
      '/studio/',
      '/studio/deliveries',
      `/studio/deliveries/${items[0].webhookId}`,
      '/studio/runs',
      `/studio/runs/${run.id}`,
      '/studio/inbox',
      '/studio/plugins',
      `/studio/plugins/${encodeURIComponent('@acme/orders')}`,
      '/studio/webhooks',
      '/studio/sources',
      '/studio/sources?name=hooks',
      '/studio/queues',
      '/studio/queues/mail',
      '/studio/queues/mail/first',
      '/studio/schedules',
      '/studio/jobs',
      '/studio/hosts',
      '/studio/access',
      '/studio/logs',
      '/studio/audit',
      '/studio/nothing-here',
    ];
  }, 120_000);
  afterAll(() => studio?.close());

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      test(`every screen is accessible and complete in the ${theme} theme at ${width} px`, async () => {
        const { page, problems } = await openPage(studio, '/studio/', { theme, width });
        for (const path of paths) {
          await page.goto(studio.url + path);
          await page.locator('h1').first().waitFor();
          await expect.poll(() => page.locator('.state:not(.empty)').count()).toBe(0);
          const title = await page.locator('h1').allTextContents();
          expect([path, title.length, await page.locator('main').count()]).toEqual([path, 1, 1]);
          problems.push(...(await pageFaults(page)).map((fault) => `${path}: ${fault}`));
        }
        expect(problems).toEqual([]);
      });
    }
  }

  test('a person without a session signs in with a token, and signs out again', async () => {
    const { token } = await studio.svc('tokens', 'mint', 'someone');
    const { page, problems } = await openPage(studio, '/studio/runs', { isSignedIn: false });
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByLabel('Token', { exact: true }).fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('token is not valid');
    await page.getByLabel('Token', { exact: true }).fill(token);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor();
    expect(problems).toEqual([]);
  });

  test('a person approves a waiting run in the inbox', async () => {
    const run = await studio.svc('workflows', 'run', 'ship', '--input', '{"order":2}');
    const { page, problems } = await openPage(studio, '/studio/inbox', { width: 390 });
    const card = page.locator('.card', { has: page.locator(`a[href="/studio/runs/${run.id}"]`) });
    await card.getByRole('button', { name: 'Approve' }).click();
    await expect
      .poll(async () => (await studio.svc('workflows', 'show', run.id)).run.status)
      .toBe('succeeded');
    expect(problems).toEqual([]);
  });

  test('a delivery is opened and replayed by keyboard alone', async () => {
    const { page, problems } = await openPage(studio, '/studio/deliveries');
    await page.getByRole('listbox', { name: 'Deliveries' }).focus();
    await page.keyboard.press('k');
    await page.keyboard.press('r');
    await expect.poll(() => page.getByRole('status').first().textContent()).toContain('is replayed');
    await expect.poll(() => page.locator('.row').count()).toBe(2);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/studio\/deliveries\/[\w-]+$/);
    await page.getByRole('heading', { name: '@acme/orders/created', level: 1 }).waitFor();
    expect(problems).toEqual([]);
  });

  test('a person creates a source, connects it, and pauses the destination', async () => {
    const { page, problems } = await openPage(studio, '/studio/sources');
    await page.getByLabel('Name', { exact: true }).fill('made');
    await page.getByRole('button', { name: 'Create source' }).click();
    await page.getByRole('heading', { name: 'URL of made' }).waitFor();
    const url = await page.getByText('/in/default/made/').first().textContent();
    await page.getByRole('link', { name: 'made', exact: true }).click();
    await page.getByRole('heading', { name: 'made', level: 1 }).waitFor();
    await page.getByLabel('Hand over to').selectOption('queue');
    await page.getByLabel('Name of a queue').fill('made');
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    const destinations = page.getByRole('region', { name: 'Destinations' });
    await destinations.getByRole('button', { name: 'Pause' }).click();
    await destinations.getByText('paused').waitFor();
    const headers = { 'content-type': 'application/json' };
    expect((await fetch(url!, { method: 'POST', body: '{}', headers })).status).toBe(202);
    await page.getByRole('region', { name: 'Newest deliveries' }).getByText('accepted').waitFor();
    expect(problems).toEqual([]);
  });

  test('a viewer sees everything and can change nothing', async () => {
    const client = await studio.svc('clients', 'create', 'watcher');
    await studio.svc('roles', 'grant', `client:${client.clientId}`, 'viewer');
    const { page } = await openPage(studio, '/studio/webhooks', { isSignedIn: false });
    await page.getByLabel('Client id').fill(client.clientId);
    await page.getByLabel('Client secret').fill(client.clientSecret);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Rotate secret' }).first().click();
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('role');
  });
});
