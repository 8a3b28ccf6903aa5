import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditedActions, faultsInAllThemes, openAs, openPage } from './support/people.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const VALUE = 'correct horse battery staple';

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'secrets in the studio', () => {
  let studio: Studio;

  beforeAll(async () => {
    studio = await startStudio();
  });
  afterAll(() => studio?.close());

  test('without secrets, the screen teaches the command', async () => {
    const { page, problems } = await openPage(studio, '/studio/secrets');
    await page.getByText('svc secrets set SHOP_KEY < key.txt').waitFor();
    expect(problems).toEqual([]);
  });

  test('a secret is set by keyboard alone, and its value is nowhere on the page afterwards', async () => {
    const { page, problems } = await openPage(studio, '/studio/secrets');
    await page.getByLabel('Name', { exact: true }).focus();
    await page.keyboard.type('SHOP_KEY');
    await page.keyboard.press('Tab');
    await page.keyboard.type(VALUE);
    await page.keyboard.press('Enter');
    await page.getByText('SHOP_KEY is set (version 1).').waitFor();
    await page.getByRole('region', { name: 'Secrets' }).getByText('SHOP_KEY').waitFor();
    expect(await page.getByLabel('Value').inputValue()).toBe('');
    expect(await page.content()).not.toContain(VALUE);
    expect(await auditedActions(studio)).toContain('secret.set');
    expect(problems).toEqual([]);
  });

  test('a new version with an expiry replaces the value, and short values are refused with the reason', async () => {
    const { page } = await openPage(studio, '/studio/secrets');
    await page.getByRole('button', { name: 'Set a new version of SHOP_KEY' }).click();
    await page.getByRole('heading', { name: 'New version of SHOP_KEY' }).waitFor();
    expect(await page.getByLabel('Value').inputValue()).toBe('');
    await page.getByLabel('Value').fill('short');
    await page.getByRole('button', { name: 'Set secret' }).click();
    await expect
      .poll(() => page.locator('#secret-value-issue').textContent())
      .toContain('must have at least 8 characters');
    await page.getByLabel('Value').fill('another long value');
    await page.getByLabel('Stops working at').fill('2020-01-31T12:00');
    await page.getByRole('button', { name: 'Set secret' }).click();
    await page.getByText('SHOP_KEY is set (version 2).').waitFor();
    await page.getByRole('region', { name: 'Secrets' }).getByText('expired').waitFor();
  });

  test('a value of several lines is stored as it is', async () => {
    const { page, problems } = await openPage(studio, '/studio/secrets');
    await page.getByLabel('Name', { exact: true }).fill('PEM_KEY');
    await page.getByLabel('Several lines').check();
    await page.getByLabel('Value', { exact: true }).fill('line one\nline two\n');
    await page.getByRole('button', { name: 'Set secret' }).click();
    await page.getByText('PEM_KEY is set (version 1).').waitFor();
    expect(problems).toEqual([]);
  });

  test('a viewer sees the secrets, and no button that would be refused', async () => {
    const { page } = await openAs(studio, 'viewer', '/studio/secrets');
    await page.getByRole('region', { name: 'Secrets' }).getByText('SHOP_KEY').waitFor();
    expect(await page.locator('main button').allTextContents()).toEqual(['Copy']);
    expect(await page.locator('main form').count()).toBe(0);
  });

  test('another tenant sees none of them', async () => {
    const { page } = await openAs(studio, 'admin', '/studio/secrets', 'tenant-b');
    await page.getByText('There are no secrets.').waitFor();
    expect(await page.getByRole('region', { name: 'Secrets' }).count()).toBe(0);
  });

  test('the screen is accessible and fits in both themes and widths', async () => {
    expect(await faultsInAllThemes(studio, ['/studio/secrets'])).toEqual([]);
  });

  test('a secret is revoked after a question', async () => {
    const { page, problems } = await openPage(studio, '/studio/secrets');
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void (questions.length === 1 ? dialog.dismiss() : dialog.accept());
    });
    const revoke = page.locator('tr', { hasText: 'PEM_KEY' }).getByRole('button', { name: 'Revoke' });
    await revoke.click();
    await revoke.click();
    await page.getByText('PEM_KEY is revoked.').waitFor();
    await expect.poll(() => page.locator('tr', { hasText: 'PEM_KEY' }).count()).toBe(0);
    expect(questions).toHaveLength(2);
    expect(await auditedActions(studio)).toContain('secret.revoke');
    expect(problems).toEqual([]);
  });
});
