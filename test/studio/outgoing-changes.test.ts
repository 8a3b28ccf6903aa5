import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ENDPOINT_ACCESS } from '../../src/contracts/index.ts';
import { startProvider } from './support/agreeing-provider.ts';
import { type Api, apiOf } from './support/api.ts';
import { openAs } from './support/people.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';
import { addShop } from './support/shop-plugin.ts';
import { BROWSER_MISSING, type Studio, type StudioPage, startStudio, withFiles } from './support/studio.ts';

const NOTIFY = {
  id: 'notify',
  permissions: { secrets: ['SHOP_KEY'] },
  jobs: {
    main: {
      steps: [
        {
          uses: 'http',
          with: {
            url: 'https://example.com/',
            headers: { authorization: `\${{ secrets.SHOP_KEY }}` },
          },
        },
      ],
    },
  },
};
const CONFIG = { outgoing: { allowPrivateAddresses: true }, alerts: { intervalMs: 200 } };
const prepare = async (folder: string): Promise<void> => {
  await addShop(folder);
  await withFiles({ 'workflows/notify.yaml': JSON.stringify(NOTIFY) })(folder);
};

/** Actions of the audit log that the screens of this test make. */
const AUDITED =
  /^(?:endpoint|message|portal|secret|connection|alert|alert_\w+)\.|^workflow\.approve_secrets$/;
/** Actions that this test must find in the audit log. */
const EXPECTED = [
  // By the page to which the provider leads back.
  'connection.connect',
  ...new Set(
    Object.values(ENDPOINT_ACCESS).flatMap(({ audit }) => (audit && AUDITED.test(audit) ? [audit] : [])),
  ),
].toSorted();

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'changes on the screens of outgoing messages', () => {
  let studio: Studio;
  let receiver: Receiver;
  let provider: Awaited<ReturnType<typeof startProvider>>;
  let api: Api;
  let opened: StudioPage;
  let page: Page;
  /** Questions before changes that cannot be undone. */
  const questions: string[] = [];
  let answers = true;

  beforeAll(async () => {
    receiver = await startReceiver();
    provider = await startProvider();
    studio = await startStudio(CONFIG, prepare);
    api = await apiOf(studio);
  }, 120_000);
  afterAll(async () => {
    await studio?.close();
    await receiver?.close();
    await provider?.close();
  });

  const go = async (path: string): Promise<void> => {
    await page.goto(studio.url + path);
    await page.locator('h1').waitFor();
  };
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true }).first();
  const says = (text: string | RegExp) => page.getByText(text).first().waitFor();
  const row = (text: string) => page.locator('tr', { hasText: text });

  async function changeEndpoints(): Promise<void> {
    await go('/studio/endpoints?new=endpoint');
    await page.getByLabel('URL', { exact: true }).fill(`${receiver.url}/own`);
    await page.getByLabel('Application', { exact: false }).last().fill('customer-7');
    await button('Create endpoint').click();
    const secret = await page.getByText(/^whsec_/).textContent();
    await page.getByRole('link', { name: `${receiver.url}/own` }).click();
    await page.getByRole('heading', { name: `${receiver.url}/own`, level: 1 }).waitFor();
    expect(await page.content()).not.toContain(secret!);
    await button('Send test').click();
    await says('HTTP 200');
    await button(/^Disable/).click();
    await says('by a person');
    await button(/^Enable/).click();
    await page.locator('.facts .status', { hasText: 'active' }).waitFor();
    await button('Rotate secret').click();
    const rotated = await page.getByText(/^whsec_/).textContent();
    expect(rotated).not.toBe(secret);
    await page.reload();
    await says('Previous secret valid until');
    expect(await page.content()).not.toMatch(/whsec_[A-Za-z0-9+/]{8}/);
  }

  async function changeMessages(): Promise<void> {
    await go('/studio/messages?new=message');
    await page.getByLabel('Event type of the message').fill('order.paid');
    await page.getByLabel('Application of the message').fill('customer-7');
    // The schema of the declared type makes a form.
    await page.getByLabel('Order').fill('A-1');
    await page.getByLabel('Amount').fill('0');
    await page.getByLabel('Currency').selectOption('USD');
    await page.getByLabel('Express').check();
    await button('Send message').click();
    expect((await api('GET', '/api/v1/messages?type=order.paid')).items).toEqual([]);
    await page.getByLabel('Amount').fill('12');
    await button('Send message').click();
    await says('The message goes to 1 endpoint.');
    const [message] = (await api('GET', '/api/v1/messages?type=order.paid')).items;
    const read = () => api('GET', `/api/v1/messages/${message.id}`);
    expect((await read()).data).toEqual({ order: 'A-1', amount: 12, currency: 'USD', express: true });
    await expect.poll(async () => (await read()).endpoints[0].status).toBe('succeeded');
    await page.getByRole('link', { name: 'Open the message' }).click();
    await button('Replay').click();
    await says('The message is sent again to 1 endpoint.');
    await expect.poll(async () => (await read()).endpoints[0].attempts).toBe(2);
    // Others do not match the filter, and are not sent again.
    await api('POST', '/api/v1/messages', { type: 'order.other', data: {}, application: 'customer-7' });
    const ofType = () => receiver.requests.filter(({ body }) => body.includes('"order.paid"')).length;
    const others = () => receiver.requests.filter(({ body }) => body.includes('"order.other"')).length;
    await expect.poll(others).toBe(1);
    const before = ofType();
    await go('/studio/messages?type=order.paid&application=customer-7');
    await button('Replay all that match…').click();
    await says('Selection: Event type: order.paid, Application: customer-7');
    await button('Replay 1').click();
    await says('Replay: 1 done.');
    await expect.poll(ofType).toBe(before + 1);
    expect(others()).toBe(1);
  }

  async function changePortalLinks(): Promise<void> {
    await go('/studio/endpoints?new=link');
    await page.getByLabel('Application of the link').fill('customer-7');
    await button('Create link').click();
    await says('/studio/portal#token=');
    await button('Revoke').click();
    await says('A link of customer-7 is revoked.');
    await expect.poll(() => row('customer-7').getByRole('button', { name: 'Revoke' }).count()).toBe(0);
  }

  async function changeSecrets(): Promise<void> {
    await go('/studio/secrets?new=secret');
    await page.getByLabel('Name', { exact: true }).fill('SHOP_KEY');
    await page.getByLabel('Value').fill('a value that nobody sees');
    await button('Set secret').click();
    await says('SHOP_KEY is set (version 1).');
    const workflows = page.getByRole('region', { name: 'Workflows with secrets' });
    await workflows.getByText('not approved').waitFor();
    answers = false;
    await workflows.getByRole('button', { name: 'Approve' }).click();
    expect(questions.at(-1)).toContain('Its steps can then send SHOP_KEY to their targets.');
    await workflows.getByText('not approved').waitFor();
    answers = true;
    await workflows.getByRole('button', { name: 'Approve' }).click();
    await says('notify may use its secrets until its definition changes.');
    await workflows.locator('.status', { hasText: 'active' }).waitFor();
    expect(await workflows.getByRole('button', { name: 'Approve' }).isDisabled()).toBe(true);
    expect(await page.content()).not.toContain('a value that nobody sees');
    await row('SHOP_KEY').getByRole('button', { name: 'Revoke' }).click();
    await says('SHOP_KEY is revoked.');
  }

  async function changeConnections(): Promise<void> {
    await go('/studio/connections?new=connection');
    await page.getByLabel('Name', { exact: true }).fill('crm');
    await page.getByLabel('Provider', { exact: true }).selectOption({ label: 'Another OAuth 2 provider' });
    await page.getByLabel('Authorization URL').fill(`${provider.url}/authorize`);
    await page.getByLabel('Token URL').fill(`${provider.url}/token`);
    await page.getByLabel('Client id').fill('client');
    await button('Create connection').click();
    await page.getByRole('heading', { name: 'Authorize crm' }).waitFor();
    await page.getByRole('link', { name: 'crm', exact: true }).click();
    await button('Authorize').click();
    const tab = opened.context.waitForEvent('page');
    await page.getByRole('link', { name: 'Open the provider' }).click();
    const provided = await tab;
    await provided.getByText('Continue to').click();
    await says('crm is authorized.');
    await provided.close();
    await button('Refresh').click();
    await says('The access token is refreshed.');
    await button('Revoke').click();
    await page.locator('.verdict', { hasText: 'revoked' }).waitFor();
    await page.getByLabel('New client secret').fill('another client secret');
    await button('Replace secret').click();
    await says('The client secret is replaced.');
    await remove('Delete', /\/studio\/connections$/);
    await says('There are no connections.');
  }

  async function changeAlerts(): Promise<void> {
    await go('/studio/alerts?view=channels&new=channel');
    await page.getByLabel('Name of the channel').fill('ops');
    await page.getByLabel('URL', { exact: true }).fill(`${receiver.url}/ops`);
    await button('Create channel').click();
    await says('The channel ops is created.');
    await button('Test ops').click();
    await says('The test reached ops');
    await button('Edit ops').click();
    await page.getByLabel('Description of the channel').fill('On call');
    await button('Save').click();
    await says('The channel ops is changed.');
    await go('/studio/alerts?view=rules&new=rule');
    await page.getByLabel('Name of the rule').fill('lost');
    await page.getByLabel('Seconds until the first notification').fill('0');
    await button('Create rule').click();
    await says('The rule lost is created.');
    await button('Edit lost').click();
    await page.getByLabel('ops', { exact: true }).check();
    await button('Save').click();
    await says('The rule lost is changed.');
    receiver.answers.set('/broken', 500);
    const url = `${receiver.url}/broken`;
    await api('POST', '/api/v1/endpoints', { url, types: ['lost'], retrySchedule: [] });
    await api('POST', '/api/v1/messages', { type: 'lost', data: 1 });
    await go('/studio/alerts');
    await page.getByRole('region', { name: 'Alerts' }).getByRole('link').first().click();
    await button('Acknowledge').click();
    await says('The alert is acknowledged.');
    await button('Resolve').click();
    await says('The alert is resolved.');
    await go('/studio/alerts?view=silences&new=silence');
    await page.getByLabel('Rule of the alerts').fill('lost');
    await button('Silence').click();
    await says('Alerts that match are not sent until the silence ends.');
    await button('End').click();
    await says('The silence has ended.');
    await go('/studio/alerts?view=channels');
    await button('Delete').click();
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('lost');
    await go('/studio/alerts?view=rules');
    await button('Delete').click();
    await says('The rule lost is deleted.');
    await go('/studio/alerts?view=channels');
    await button('Delete').click();
    await says('The channel ops is deleted.');
  }

  /** Answers no first, and checks that the object stays. */
  async function remove(label: string, address: RegExp): Promise<void> {
    const at = page.url();
    answers = false;
    await button(label).click();
    expect(page.url()).toBe(at);
    answers = true;
    await button(label).click();
    await page.waitForURL(address);
  }

  test('each change is in the audit log with the person, the action and the object', {
    timeout: 180_000,
  }, async () => {
    const { hostId, ...rest } = await openAs(studio, 'admin', '/studio/endpoints');
    opened = rest;
    page = opened.page;
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void (answers ? dialog.accept() : dialog.dismiss());
    });
    await changeEndpoints();
    await changeMessages();
    await changePortalLinks();
    await changeSecrets();
    await changeConnections();
    await changeAlerts();
    const { items: endpoints } = await api('GET', '/api/v1/endpoints?application=customer-7');
    const { id } = endpoints[0];
    await go(`/studio/endpoints/${id}`);
    await remove('Delete', /\/studio\/endpoints$/);
    expect((await api('GET', '/api/v1/endpoints?application=customer-7')).items).toEqual([]);

    const { items } = await studio.svc('audit', 'list', '-n', '500');
    const own = (items as Array<{ actor: string; action: string; object: string; outcome: string }>).filter(
      ({ actor, action }) => actor === hostId && AUDITED.test(action),
    );
    expect([...new Set(own.map(({ action }) => action))].toSorted()).toEqual(EXPECTED);
    const objects = own.map(({ action, object }) => `${action} ${object}`);
    expect(objects).toEqual(
      expect.arrayContaining([
        ...['create', 'update', 'rotate', 'test', 'delete'].map(
          (action) => `endpoint.${action} endpoint:${id}`,
        ),
        'message.replay messages',
        'portal.create application:customer-7',
        'secret.set secret:SHOP_KEY',
        'secret.revoke secret:SHOP_KEY',
        'workflow.approve_secrets workflow:notify',
        ...['create', 'authorize', 'refresh', 'revoke', 'update', 'delete'].map(
          (action) => `connection.${action} connection:crm`,
        ),
        ...['create', 'update', 'delete'].map((action) => `alert_channel.${action} alert-channel:ops`),
        ...['create', 'update', 'delete'].map((action) => `alert_rule.${action} alert-rule:lost`),
        'alert.test alerts:ops',
      ]),
    );
    for (const [action, object] of [
      ['message.replay', /^message:msg_/],
      ['portal.revoke', /^application:portal_/],
      ['alert.acknowledge', /^alert:alert_/],
      ['alert.resolve', /^alert:alert_/],
      ['alert_silence.create', /^alert-silence:/],
      ['alert_silence.delete', /^alert-silence:/],
    ] as const)
      expect(own.some((entry) => entry.action === action && object.test(entry.object))).toBe(true);
    await go('/studio/audit');
    await says('endpoint.delete');
    expect(opened.problems).toEqual([]);
  });
});
