import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startProvider } from './support/agreeing-provider.ts';
import { type Api, apiOf } from './support/api.ts';
import { press, tabTo, typeInto } from './support/keyboard.ts';
import { openPage, settled } from './support/people.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const CONFIG = {
  outgoing: { allowPrivateAddresses: true, allow: ['127.0.0.1'] },
  alerts: { intervalMs: 200 },
};

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'outgoing messages without a mouse', () => {
  let studio: Studio;
  let receiver: Receiver;
  let provider: Awaited<ReturnType<typeof startProvider>>;
  let api: Api;

  beforeAll(async () => {
    receiver = await startReceiver();
    provider = await startProvider();
    studio = await startStudio(CONFIG);
    api = await apiOf(studio);
  });
  afterAll(async () => {
    await studio?.close();
    await receiver?.close();
    await provider?.close();
  });

  async function open(path: string) {
    const opened = await openPage(studio, path);
    opened.page.on('dialog', (dialog) => void dialog.accept());
    return opened;
  }
  const says = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

  test('an endpoint is created, changed, tested, rotated and deleted', async () => {
    const { page, problems } = await open('/studio/endpoints');
    await typeInto(page, { URL: `${receiver.url}/own`, 'Event types': 'order.*', Description: 'Shop' });
    await page.keyboard.press('Enter');
    await page.getByText(/^whsec_/).waitFor();
    await press(page, `${receiver.url}/own`, 'Shift+Tab');
    await page.getByRole('heading', { name: `${receiver.url}/own`, level: 1 }).waitFor();
    await press(page, 'Edit the endpoint');
    await page.getByLabel('Description').waitFor();
    await typeInto(page, { Description: 'Store' });
    await page.keyboard.press('Enter');
    await says(page, 'The endpoint is changed.');
    await press(page, 'Send test');
    await says(page, 'HTTP 200');
    await press(page, 'Rotate secret', 'Shift+Tab');
    await page.getByText(/^whsec_/).waitFor();
    await press(page, /^Disable/, 'Shift+Tab');
    await says(page, 'by a person');
    await press(page, 'Delete');
    await page.waitForURL(/\/studio\/endpoints$/);
    expect((await api('GET', '/api/v1/endpoints')).items).toEqual([]);
    expect(problems).toEqual([]);
  });

  test('a message is sent, opened and replayed', async () => {
    await api('POST', '/api/v1/endpoints', { url: `${receiver.url}/taken` });
    const { page, problems } = await open('/studio/messages');
    await press(page, 'Send a message');
    await page.getByLabel('Event type of the message').waitFor();
    await typeInto(page, { 'Event type of the message': 'key.board' });
    await press(page, 'Send message');
    await says(page, 'The message goes to 1 endpoint.');
    await press(page, 'Open the message', 'Shift+Tab');
    await page.getByRole('heading', { name: 'key.board', level: 1 }).waitFor();
    await page.locator('.verdict', { hasText: '1 succeeded' }).waitFor();
    await press(page, 'Replay');
    await says(page, 'The message is sent again to 1 endpoint.');
    expect(problems).toEqual([]);
  });

  test('a channel and a rule are created, an alert is acknowledged, silenced and resolved, and the rule deleted', async () => {
    const { page, problems } = await open('/studio/alerts?view=channels');
    await typeInto(page, { 'Name of the channel': 'keys', URL: `${receiver.url}/keys` });
    await page.keyboard.press('Enter');
    await says(page, 'The channel keys is created.');
    await press(page, 'Test keys', 'Shift+Tab');
    await says(page, 'The test reached keys');
    await press(page, 'Rules', 'Shift+Tab');
    await page.getByLabel('keys', { exact: true }).waitFor();
    await typeInto(page, { 'Name of the rule': 'lost' });
    await tabTo(page, 'keys');
    await page.keyboard.press('Space');
    await typeInto(page, { 'Seconds until the first notification': '0' });
    await page.keyboard.press('Enter');
    await says(page, 'The rule lost is created.');
    receiver.answers.set('/lost', 500);
    await api('POST', '/api/v1/endpoints', {
      url: `${receiver.url}/lost`,
      types: ['lost'],
      retrySchedule: [],
    });
    await api('POST', '/api/v1/messages', { type: 'lost', data: 1 });
    await press(page, 'Alerts', 'Shift+Tab');
    await page.waitForURL(/\/studio\/alerts$/);
    await page.getByRole('region', { name: 'Alerts' }).getByRole('link').first().waitFor();
    const title = await page.getByRole('region', { name: 'Alerts' }).getByRole('link').first().textContent();
    await press(page, title!);
    await page.locator('.verdict', { hasText: 'firing' }).waitFor();
    await press(page, 'Acknowledge');
    await says(page, 'The alert is acknowledged.');
    await press(page, 'Silence…');
    await page.getByLabel('Comment').waitFor();
    await typeInto(page, { Comment: 'Known' });
    await page.keyboard.press('Enter');
    await says(page, 'Alerts that match are not sent');
    await press(page, 'Resolve');
    await page.locator('.verdict', { hasText: 'resolved' }).waitFor();
    await page.goto(`${studio.url}/studio/alerts?view=rules`);
    await page.getByRole('button', { name: 'Edit lost' }).waitFor();
    await press(page, 'Delete');
    await says(page, 'The rule lost is deleted.');
    expect(problems).toEqual([]);
  });

  test('a secret is set, replaced and revoked', async () => {
    const { page, problems } = await open('/studio/secrets');
    await typeInto(page, { Name: 'KEY_BOARD', Value: 'a value of the keyboard' });
    await page.keyboard.press('Enter');
    await says(page, 'KEY_BOARD is set (version 1).');
    await press(page, 'Set a new version of KEY_BOARD', 'Shift+Tab');
    await page.getByRole('heading', { name: 'New version of KEY_BOARD' }).waitFor();
    await typeInto(page, { Value: 'another value of it' });
    await page.keyboard.press('Enter');
    await says(page, 'KEY_BOARD is set (version 2).');
    await press(page, 'Revoke', 'Shift+Tab');
    await says(page, 'KEY_BOARD is revoked.');
    expect(problems).toEqual([]);
  });

  test('a connection is created, its link opened, and the connection deleted', async () => {
    const { page, problems, context } = await open('/studio/connections');
    await typeInto(page, { Name: 'keys' });
    await tabTo(page, 'Provider');
    await page.keyboard.type('Another');
    await page.getByLabel('Authorization URL').waitFor();
    await typeInto(page, {
      'Authorization URL': `${provider.url}/authorize`,
      'Token URL': `${provider.url}/token`,
      'Client id': 'client',
    });
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Authorize keys' }).waitFor();
    const tab = context.waitForEvent('page');
    await press(page, 'Open the provider', 'Shift+Tab');
    const provided = await tab;
    await provided.getByText('Continue to').waitFor();
    await press(provided, /^Continue to/);
    await says(page, 'keys is authorized.');
    await press(page, 'keys');
    await page.getByRole('heading', { name: 'keys', level: 1 }).waitFor();
    await page.locator('.verdict', { hasText: 'active' }).waitFor();
    await press(page, 'Delete');
    await page.waitForURL(/\/studio\/connections$/);
    expect(problems).toEqual([]);
  });

  test('in the portal, an endpoint is created and tested, and a message is found', async () => {
    const { url } = await api('POST', '/api/v1/endpoints/portal', { application: 'keys' });
    const { pathname, hash } = new URL(url);
    const { page, problems, context } = await studio.open(pathname + hash, { isSignedIn: false });
    onTestFinished(() => context.close());
    await settled(page);
    await page.getByLabel('URL', { exact: true }).waitFor();
    await typeInto(page, { URL: `${receiver.url}/portal` });
    await page.keyboard.press('Enter');
    await page.getByText(/^whsec_/).waitFor();
    await press(page, `${receiver.url}/portal`, 'Shift+Tab');
    await page.getByRole('heading', { name: `${receiver.url}/portal`, level: 1 }).waitFor();
    await press(page, 'Send test');
    await says(page, 'HTTP 200');
    await api('POST', '/api/v1/messages', { type: 'portal.keys', data: 1, application: 'keys' });
    await press(page, 'Messages', 'Shift+Tab');
    await page.locator('.row').first().waitFor();
    await tabTo(page, 'Messages');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'portal.keys', level: 1 }).waitFor();
    expect(problems).toEqual([]);
  });
});
