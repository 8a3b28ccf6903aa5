import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startProvider } from './support/agreeing-provider.ts';
import { auditedActions, faultsInAllThemes, openAs, openPage } from './support/people.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'connections in the studio', () => {
  let studio: Studio;
  let provider: Awaited<ReturnType<typeof startProvider>>;

  beforeAll(async () => {
    provider = await startProvider();
    studio = await startStudio({ outgoing: { allowPrivateAddresses: true } });
  });
  afterAll(async () => {
    await studio?.close();
    await provider?.close();
  });

  test('a connection is created, authorized at its provider, refreshed and revoked', async () => {
    const { page, problems, context } = await openPage(studio, '/studio/connections');
    await page.getByText('There are no connections.').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('crm');
    await page.getByLabel('Provider', { exact: true }).selectOption({ label: 'Another OAuth 2 provider' });
    await page.getByLabel('Authorization URL').fill(`${provider.url}/authorize`);
    await page.getByLabel('Token URL').fill(`${provider.url}/token`);
    await page.getByLabel('Client id').fill('client');
    await page.getByLabel('Client secret').fill('the client secret');
    await page.getByRole('button', { name: 'Create connection' }).click();
    await page.getByRole('heading', { name: 'Authorize crm' }).waitFor();
    expect(await page.getByLabel('Client secret').inputValue()).toBe('');
    const opened = context.waitForEvent('page');
    await page.getByRole('link', { name: 'Open the provider' }).click();
    await (await opened).getByText('Continue to').click();
    await page.getByText('crm is authorized.').waitFor();
    await page.getByRole('link', { name: 'crm', exact: true }).click();
    await page.locator('.verdict', { hasText: 'active' }).waitFor();
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('The access token is refreshed.').waitFor();
    expect(await page.content()).not.toMatch(/secret-access-token|secret-refresh-token|the client secret/);
    await page.getByLabel('New client secret').fill('another client secret');
    await page.getByRole('button', { name: 'Replace secret' }).click();
    await page.getByText('The client secret is replaced.').waitFor();
    expect(await page.getByLabel('New client secret').inputValue()).toBe('');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('The access token is refreshed.').waitFor();
    expect(await page.content()).not.toContain('another client secret');
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.locator('.verdict', { hasText: 'revoked' }).waitFor();
    expect(await auditedActions(studio)).toEqual(
      expect.arrayContaining([
        ...['connection.create', 'connection.refresh', 'connection.update', 'connection.revoke'],
      ]),
    );
    expect(problems).toEqual([]);
  });

  test('a viewer sees the connection, and no button that would be refused', async () => {
    const { page } = await openAs(studio, 'viewer', '/studio/connections');
    await page.getByRole('link', { name: 'crm', exact: true }).click();
    await page.getByRole('heading', { name: 'crm', level: 1 }).waitFor();
    expect(await page.locator('main button').allTextContents()).toEqual(['Copy']);
  });

  test('another tenant sees none of them', async () => {
    const { page } = await openAs(studio, 'admin', '/studio/connections', 'tenant-b');
    await page.getByText('There are no connections.').waitFor();
  });

  test('the screens are accessible and fit in both themes and widths', async () => {
    const paths = ['/studio/connections', '/studio/connections?name=crm'];
    expect(await faultsInAllThemes(studio, paths)).toEqual([]);
  });
});
