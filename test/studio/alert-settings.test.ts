import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAIL_PASSWORD, startMailServer } from '../support/mail-server.ts';
import { type Api, apiOf } from './support/api.ts';
import { faultsInAllThemes, openAs, openPage } from './support/people.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const ROUTING_KEY = 'f00dfacef00dfacef00dfacef00dface';
const CONFIG = {
  outgoing: { allowPrivateAddresses: true },
  alerts: {
    intervalMs: 200,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
    channels: { pager: { namespace: 'default', type: 'pagerduty', routingKey: '${secret:PAGER_KEY}' } },
    rules: { declared: { namespace: 'default', kind: 'run.failed', channels: ['pager'], groupWaitMs: 0 } },
  },
};

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'channels and rules of alerts in the studio', () => {
  let studio: Studio;
  let receiver: Receiver;
  let api: Api;

  beforeAll(async () => {
    receiver = await startReceiver();
    studio = await startStudio(CONFIG);
    api = await apiOf(studio);
  });
  afterAll(async () => {
    await studio?.close();
    await receiver?.close();
  });

  test('a channel of Slack takes the secret URL, tests it, and never shows it again', async () => {
    const secret = `${receiver.url}/services/T0/B0/slacksecret`;
    const { page, problems } = await openPage(studio, '/studio/alerts?view=channels');
    await page.getByLabel('Name of the channel').fill('chat');
    await page.getByLabel('Type').selectOption('slack');
    await page.getByRole('button', { name: 'Create channel' }).click();
    // The browser asks for the required secret.
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('channel-secret');
    await page.getByLabel('URL of the incoming webhook').fill(secret);
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.getByText('The channel chat is created.').waitFor();
    await page.getByRole('button', { name: 'Test chat' }).click();
    await page.getByText('The test reached chat').waitFor();
    expect(receiver.requests.map(({ path }) => path)).toContain('/services/T0/B0/slacksecret');
    await page.getByRole('button', { name: 'Edit chat' }).click();
    expect(await page.getByLabel('New: URL of the incoming webhook').inputValue()).toBe('');
    expect(await page.content()).not.toContain('slacksecret');
    expect(JSON.stringify(await api('GET', '/api/v1/alerts/channels'))).not.toContain('slacksecret');
    expect(problems).toEqual([]);
  });

  test('a channel of PagerDuty takes a routing key, and keeps it when other settings change', async () => {
    const { page, problems } = await openPage(studio, '/studio/alerts?view=channels');
    await page.getByLabel('Name of the channel').fill('duty');
    await page.getByLabel('Type').selectOption('pagerduty');
    await page.getByLabel('URL of the Events API').fill(`${receiver.url}/enqueue`);
    await page.getByLabel('Routing key').fill(ROUTING_KEY);
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.getByText('The channel duty is created.').waitFor();
    await page.getByRole('button', { name: 'Edit duty' }).click();
    await page.getByLabel('Description of the channel').fill('On call');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The channel duty is changed.').waitFor();
    await page.getByRole('button', { name: 'Test duty' }).click();
    await page.getByText('The test reached duty').waitFor();
    const [sent] = receiver.requests.filter(({ path }) => path === '/enqueue');
    expect(JSON.parse(sent!.body)).toMatchObject({ routing_key: ROUTING_KEY });
    expect(await page.content()).not.toContain(ROUTING_KEY);
    expect(problems).toEqual([]);
  });

  test('a channel of e-mail sends through an SMTP server with a password', async () => {
    const { port, mails } = await startMailServer({ allowInsecureAuth: true });
    const { page, problems } = await openPage(studio, '/studio/alerts?view=channels');
    await page.getByLabel('Name of the channel').fill('mail');
    await page.getByLabel('Type').selectOption('email');
    await page.getByLabel('SMTP server').fill('127.0.0.1');
    await page.getByLabel('Port').fill(String(port));
    await page.getByLabel('Encryption').selectOption('none');
    await page.getByLabel('User').fill('svc');
    await page.getByLabel('From').fill('svc@example.com');
    await page.getByLabel('To', { exact: true }).fill('ops@example.com, dev@example.com');
    await page.getByLabel('Password').fill('a-wrong-password');
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.getByText('The channel mail is created.').waitFor();
    await page.getByRole('button', { name: 'Test mail' }).click();
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('The test of mail failed');
    await page.getByRole('button', { name: 'Edit mail' }).click();
    await page.getByLabel('New: Password').fill(MAIL_PASSWORD);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The channel mail is changed.').waitFor();
    await page.getByRole('button', { name: 'Test mail' }).click();
    await page.getByText('The test reached mail').waitFor();
    expect(mails).toHaveLength(1);
    expect(mails[0]!.text).toContain('ops@example.com');
    const content = await page.content();
    for (const password of ['a-wrong-password', MAIL_PASSWORD]) expect(content).not.toContain(password);
    expect(problems).toEqual([]);
  });

  test('entries of the config are shown without buttons, and the API refuses to change them', async () => {
    await api('POST', '/api/v1/alerts/rules', { name: 'own', kind: 'run.failed', channels: ['chat'] });
    const { page, problems } = await openPage(studio, '/studio/alerts?view=rules');
    const rules = page.getByRole('region', { name: 'Rules' });
    const declared = rules.locator('tr', { hasText: 'declared' });
    await declared.getByText('default, in svc.config.json').waitFor();
    await declared.getByText('in the config', { exact: true }).waitFor();
    expect(await declared.getByRole('button').count()).toBe(0);
    expect(await rules.locator('tr', { hasText: 'own' }).getByRole('button').allTextContents()).toEqual([
      'Edit',
      'Delete',
    ]);
    await page.goto(`${studio.url}/studio/alerts?view=channels`);
    const pager = page
      .getByRole('region', { name: 'Channels' })
      .locator('tr', { hasText: 'in svc.config.json' });
    await pager.getByText('default, in svc.config.json').waitFor();
    expect(await pager.getByRole('button').allTextContents()).toEqual(['Test']);
    await expect(api('DELETE', '/api/v1/alerts/rules/declared')).rejects.toThrow(
      'declared in svc.config.json',
    );
    expect(problems).toEqual([]);
  });

  test('an operator makes rules, channels and silences of all namespaces, which a tenant neither sees nor changes', async () => {
    const { page, problems } = await openPage(studio, '/studio/alerts?view=channels');
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByLabel('Name of the channel').fill('everyone');
    await page.getByLabel('For all namespaces and the platform').check();
    await page.getByLabel('URL', { exact: true }).fill(`${receiver.url}/everyone`);
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.getByText('The channel everyone is created.').waitFor();
    await page.getByRole('link', { name: 'Rules' }).click();
    await page.getByLabel('Name of the rule').fill('full');
    await page.getByLabel('Alert when').selectOption('disk.low');
    await page.getByLabel('For all namespaces and the platform').check();
    await page.getByLabel('everyone', { exact: true }).check();
    await page.getByRole('button', { name: 'Create rule' }).click();
    await page.getByText('The rule full is created.').waitFor();
    const full = page.getByRole('region', { name: 'Rules' }).locator('tr', { hasText: 'full' });
    await full.getByText('operators').waitFor();
    await page.goto(`${studio.url}/studio/alerts?view=silences`);
    await page.getByLabel('Rule of the alerts').fill('full');
    await page.getByLabel('For all namespaces and the platform').check();
    await page.getByRole('button', { name: 'Silence', exact: true }).click();
    await page.getByText('Alerts that match are not sent').waitFor();
    const [silence] = (await studio.svc('alerts', 'silences')).items;
    expect(silence).toMatchObject({ namespaceId: '*', matcher: { rule: 'full' } });

    const { page: own } = await openAs(studio, 'admin', '/studio/alerts?view=rules');
    await own.getByRole('region', { name: 'Rules' }).getByText('own', { exact: true }).waitFor();
    expect(await own.getByRole('region', { name: 'Rules' }).textContent()).not.toContain('full');
    expect(await own.getByLabel('For all namespaces and the platform').count()).toBe(0);
    await own.getByLabel('Name of the rule').fill('mine');
    await own.getByLabel('Alert when').selectOption('disk.low');
    await own.getByRole('button', { name: 'Create rule' }).click();
    await expect.poll(() => own.getByRole('alert').first().textContent()).toContain('Only administrators');

    await page.goto(`${studio.url}/studio/alerts?view=rules`);
    await full.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('The rule full is deleted.').waitFor();
    expect(problems).toEqual([]);
  });

  test('each form of a channel is accessible and fits', async () => {
    expect(await faultsInAllThemes(studio, ['/studio/alerts?view=channels&new=channel'])).toEqual([]);
  });
});
