import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const RESERVED = ['sources', 'queues', 'endpoints', 'messages', 'alerts', 'secrets', 'connections'];

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'tools of the studio', () => {
  let studio: Studio;
  let delivery: string;
  let run: string;

  beforeAll(async () => {
    studio = await startStudio();
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
      ['0123456789abcdef0123456789abcdef', '/studio/deliveries?search=0123456789abcdef0123456789abcdef'],
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

  test('addresses of screens that this version lacks say so', async () => {
    const { page, problems, context } = await studio.open('/studio/');
    for (const name of RESERVED.flatMap((each) => [each, `${each}/some-id`])) {
      await page.goto(`${studio.url}/studio/${name}`);
      await page.getByRole('heading', { name: 'Not part of this version', level: 1 }).waitFor();
    }
    expect(await axeViolations(page)).toEqual([]);
    expect(problems).toEqual([]);
    await context.close();
  });
});
