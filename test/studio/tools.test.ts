import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deliver } from '../support/gateway.ts';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const SENDERS = fileURLToPath(new URL('../fixtures/projects/senders/plugins/senders', import.meta.url));

/** Script of a page: presses Ctrl-K in the moment when the button of the palette is added to the page. */
const PRESS_AT_ONCE = `
  const observer = new MutationObserver(() => {
    if (!document.querySelector('button[aria-keyshortcuts~="Control+K"]')) return;
    observer.disconnect();
    dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }));
  });
  observer.observe(document, { childList: true, subtree: true });
`;

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'tools of the studio', () => {
  let studio: Studio;
  let delivery: string;
  let run: string;

  beforeAll(async () => {
    studio = await startStudio({ plugins: ['./plugins/*', SENDERS] });
    const { svc } = studio;
    await svc('webhooks', 'provision', '@acme/orders', 'created');
    delivery = (await svc('webhooks', 'send', '@acme/orders', 'created', '--data', '{"id":1,"lines":[1]}'))
      .webhookId;
    run = (await svc('workflows', 'run', 'ship', '--input', '{"order":1}')).id;
  });
  afterAll(() => studio?.close());

  /** Opens the palette, types a text, and returns its text field. */
  async function typeInPalette(page: Page, text: string) {
    await page.getByRole('button', { name: 'Go to…' }).waitFor();
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Screen, name or id' });
    await field.waitFor();
    await page.keyboard.type(text);
    return field;
  }

  test('the palette opens a screen, a plugin, a delivery and a run by keyboard alone', async () => {
    const { page, problems, context } = await studio.open('/studio/');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    const targets = [
      ['Audit', '/studio/audit'],
      ['plugin orders', `/studio/plugins/${encodeURIComponent('@acme/orders')}`],
      ['orders/created', '/studio/webhooks?pluginId=%40acme%2Forders&event=created'],
      [delivery, `/studio/deliveries/${delivery}`],
      [run, `/studio/runs/${run}`],
      ['0123456789abcdef0123456789abcdef', '/studio/traces/0123456789abcdef0123456789abcdef'],
      ['customer:acme', '/studio/runs?label=customer%3Aacme'],
    ] as const;
    for (const [text, path] of targets) {
      await typeInPalette(page, text);
      const options = page.getByRole('listbox', { name: 'Matches' }).getByRole('option');
      await expect.poll(() => options.first().textContent()).toContain(text.split(/[ /]/).at(-1)!);
      await page.keyboard.press('Enter');
      await expect.poll(() => page.url()).toBe(studio.url + path);
      expect(await page.getByRole('dialog').count()).toBe(0);
    }
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the key of the palette works as soon as its button is on the page', async () => {
    const { page, context } = await studio.open('/studio/');
    await page.addInitScript(PRESS_AT_ONCE);
    await page.reload();
    await page.getByRole('combobox', { name: 'Screen, name or id' }).waitFor();
    await context.close();
  });

  test('the palette changes the theme that the header names', async () => {
    const { page, problems, context } = await studio.open('/studio/');
    await page.getByRole('button', { name: 'Theme: system' }).waitFor();
    await typeInPalette(page, 'change the theme');
    await page.getByRole('option', { name: 'Action Change the theme' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a plugin links to its webhook, and each screen of the webhook gets the focus', async () => {
    const { page, problems, context } = await studio.open('/studio/plugins/%40acme%2Forders');
    const focused = () => page.evaluate<string>('document.activeElement.id');
    await page.getByRole('link', { name: 'plain', exact: true }).click();
    await page.getByRole('heading', { name: '@acme/orders/plain', level: 1 }).waitFor();
    await expect.poll(focused).toBe('main');
    await page.getByRole('link', { name: 'Set up' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Set up a webhook', level: 1 }).waitFor();
    await expect.poll(focused).toBe('main');
    await page.getByLabel('Plugin and event').focus();
    await page.getByLabel('Plugin and event').selectOption({ label: '@acme/orders/created (hmac)' });
    await expect.poll(() => page.url()).toContain('event=created');
    expect(await focused()).toBe('setup-webhook');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the logs and the events show the command with the same filters', async () => {
    const { page, problems, context } = await studio.open('/studio/logs?level=warn&service=gateway&from=0');
    const since = '--since 1970-01-01T00:00:00.000Z';
    await page.getByText(`svc logs -f gateway --level warn ${since}`).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    await page.goto(`${studio.url}/studio/events?type=a.b&from=1970-01-01T00:00:00Z`);
    await page.getByText(`svc events list --type a.b ${since}`).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      test(`the palette is accessible in the ${theme} theme at ${width} px`, async () => {
        const { page, problems, context } = await studio.open('/studio/', { theme, width });
        const field = await typeInPalette(page, 'a');
        await page.keyboard.press('ArrowDown');
        const selected = page.locator('[role="option"][aria-selected="true"]');
        expect(await field.getAttribute('aria-activedescendant')).toBe(await selected.getAttribute('id'));
        expect(await axeViolations(page)).toEqual([]);
        await page.keyboard.press('Escape');
        await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
        expect(problems).toEqual([]);
        await context.close();
      });
    }
  }

  test('an administrator switches the namespace, and a link opens the same one', async () => {
    await studio.svc('clients', 'create', 'guest', '--namespace', 'tenant-b');
    const { page, problems, context } = await studio.open(`/studio/deliveries/${delivery}`);
    const field = page.getByRole('combobox', { name: 'Namespace', exact: true });
    await field.fill('tenant-b');
    await page.keyboard.press('Enter');
    await page.getByText('No delivery matches.').waitFor();
    await expect.poll(() => page.url()).toBe(`${studio.url}/studio/deliveries?namespace=tenant-b`);
    await page.getByRole('link', { name: 'Access' }).click();
    await page.getByText('guest', { exact: true }).waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe('?namespace=tenant-b');
    await page.reload();
    await page.getByText('guest', { exact: true }).waitFor();
    expect(await field.inputValue()).toBe('tenant-b');
    await field.fill('default');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).search).toBe('');
    await page.getByRole('link', { name: 'Deliveries' }).click();
    await page.getByRole('listbox', { name: 'Deliveries' }).getByRole('option').first().waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a person with a role in one namespace sees its name and no switch', async () => {
    const client = await studio.svc('clients', 'create', 'reader');
    await studio.svc('roles', 'grant', `client:${client.clientId}`, 'viewer');
    const { page, context } = await studio.open('/studio/?namespace=tenant-b', { isSignedIn: false });
    await page.getByLabel('Client id').fill(client.clientId);
    await page.getByLabel('Client secret').fill(client.clientSecret);
    await page.keyboard.press('Enter');
    await page.locator('.identity', { hasText: 'default' }).waitFor();
    expect(await page.getByLabel('Namespace').count()).toBe(0);
    await expect.poll(() => page.locator('.state.failure').count()).toBe(0);
    await context.close();
  });

  test('the set-up of a webhook ends with a delivery of the sender, and explains a refused one', async () => {
    const { page, problems, context } = await studio.open('/studio/webhooks', { width: 390 });
    await page.getByRole('link', { name: 'Set up a webhook' }).click();
    await page.getByLabel('Plugin and event').selectOption({ label: '@acme/orders/plain (secret)' });
    await page.getByRole('button', { name: 'Create the secret' }).click();
    await page.getByText('Waiting for the first delivery of the sender…').waitFor();
    const secret = await page.locator('p', { hasText: 'Copy the secret now' }).locator('code').textContent();
    expect(await axeViolations(page)).toEqual([]);
    await deliver(studio, { event: 'plain', secret: 'another' });
    await page.getByText('at the step “authentication”').waitFor();
    await page.getByText('wrong_secret').waitFor();
    await page.getByRole('link', { name: 'Enter, create or rotate the secret' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await deliver(studio, { event: 'plain', secret: secret! });
    await page.getByText('A delivery of the sender arrived. The webhook is set up.').waitFor();
    await page.reload();
    await page.getByText('It has a secret since').waitFor();
    expect(await page.getByText(secret!).count()).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a rotation in the set-up keeps the namespace in the URL, unless a person changes it', async () => {
    const { svc } = studio;
    await svc('webhooks', 'provision', '@acme/orders', 'identified', '--namespace-in-url');
    const path = '/studio/webhooks?setup=1&pluginId=%40acme%2Forders&event=identified';
    const { page, problems, context } = await studio.open(path);
    const box = page.getByRole('checkbox', { name: /^Put the namespace into the URL/ });
    const url = page.locator('.command code', { hasText: '/webhooks/' });
    const rotate = page.getByRole('button', { name: 'Rotate the secret' });
    expect(await box.isChecked()).toBe(true);
    await rotate.click();
    await page.getByText('The old secret works for 24 more hours.').waitFor();
    expect(await url.textContent()).toContain('?namespace=default');
    await box.uncheck();
    await rotate.click();
    await expect.poll(() => url.textContent()).not.toContain('?namespace=');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('another instance in the set-up has neither the secret nor the URL of the former one', async () => {
    const path = '/studio/webhooks?setup=1&pluginId=%40acme%2Forders&event=shop';
    const { page, problems, context } = await studio.open(path);
    const instance = page.getByLabel('Instance');
    await instance.fill('berlin');
    await page.getByRole('button', { name: 'Create the secret' }).click();
    await page.getByText('Copy the secret now').waitFor();
    await page.locator('.command code', { hasText: '/shop/berlin' }).waitFor();
    await instance.fill('bern');
    await page.getByRole('button', { name: 'Create the secret' }).waitFor();
    expect(await page.getByText('Copy the secret now').count()).toBe(0);
    expect(await page.locator('.command code', { hasText: '/shop/berlin' }).count()).toBe(0);
    expect(await page.getByRole('heading', { name: '4. First delivery' }).count()).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the secret of Stripe, Slack and Shopify is pasted, after the URL was set at the sender', async () => {
    const { page, problems, context } = await studio.open('/studio/webhooks?setup=1');
    const target = page.getByLabel('Plugin and event');
    await target.selectOption({ label: 'senders/stripe (stripe)' });
    await expect
      .poll(() => page.locator('h2').allTextContents())
      .toEqual(expect.arrayContaining(['1. Webhook', '2. Sender', '3. Secret']));
    const url = await page.locator('.command code', { hasText: '/webhooks/' }).textContent();
    const save = page.getByRole('button', { name: 'Save the secret' });
    expect(await save.isDisabled()).toBe(true);
    await page.getByLabel('Secret of Stripe').fill('whsec_0123456789abcdef0123456789abcdef');
    await save.click();
    await page.getByText('The secret is saved.').waitFor();
    expect(await page.locator('.command code', { hasText: '/webhooks/' }).textContent()).toBe(url);
    expect(url).toContain('/webhooks/senders/stripe?namespace=default');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a rotated webhook shows the share of deliveries with the old secret, and their senders', async () => {
    const old = (await studio.svc('webhooks', 'provision', '@acme/orders', 'small')).secret;
    const { secret } = await studio.svc('webhooks', 'provision', '@acme/orders', 'small');
    for (const each of [old, secret, secret, secret]) await deliver(studio, { event: 'small', secret: each });
    const { page, problems, context } = await studio.open(
      '/studio/webhooks?pluginId=%40acme%2Forders&event=small',
      { theme: 'dark', width: 390 },
    );
    await page.getByText('1 of 4 deliveries (25 %) used the old secret.').waitFor();
    await page.getByRole('cell', { name: 'the current one' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('two deliveries are compared, and one is saved as a fixture that svc sends again', async () => {
    const { svc } = studio;
    const other = await svc(
      'webhooks',
      'send',
      '@acme/orders',
      'created',
      '--data',
      '{"id":2,"lines":[1,3]}',
    );
    const { page, problems, context } = await studio.open(`/studio/deliveries/${delivery}`);
    await page.getByLabel('With').selectOption({ value: other.webhookId });
    const body = page.getByRole('region', { name: 'Differences: Body' });
    await body.waitFor();
    expect(await body.locator('tbody tr').allTextContents()).toEqual(['$.id12', '$.lines[1]missing3']);
    expect(await axeViolations(page)).toEqual([]);
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: /^Save as acme-orders-created-\w+\.json$/ }).click();
    const file = await (await saved).path();
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({
      format: 'svc.webhook-fixture/1',
      body: '{"id":1,"lines":[1]}',
    });
    const command = await page.locator('code', { hasText: 'svc webhooks send' }).first().textContent();
    const [, , , plugin, event] = command!.split(' ');
    const again = await svc('webhooks', 'send', plugin!, event!, '--fixture', file);
    expect(again.status).toBe(200);
    expect(problems).toEqual([]);
    await context.close();
  });
});
