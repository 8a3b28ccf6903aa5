import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALERT_KIND_FIELDS } from '../../src/contracts/index.ts';
import { KINDS } from '../../src/studio/screens/alerts/kinds.ts';
import { type Api, apiOf } from './support/api.ts';
import { auditedActions, faultsInAllThemes, openAs, openPage } from './support/people.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const CONFIG = { outgoing: { allowPrivateAddresses: true }, alerts: { intervalMs: 200 } };

test('the studio knows the kinds of alerts and their fields', () => {
  const fields = Object.entries(KINDS).map(([kind, { match, threshold }]) => [kind, { match, threshold }]);
  expect(Object.fromEntries(fields)).toEqual(ALERT_KIND_FIELDS);
});

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'alerts in the studio', () => {
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

  test('a channel is created and tested, and a rule that tells it', async () => {
    const { page, problems } = await openPage(studio, '/studio/alerts?view=channels');
    await page.getByText('There are no channels.').waitFor();
    await page.getByLabel('Name of the channel').fill('ops');
    await page.getByLabel('URL', { exact: true }).fill(`${receiver.url}/ops`);
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.locator('main code', { hasText: /^whsec_/ }).waitFor();
    await page.getByRole('button', { name: 'Test ops' }).click();
    await page.getByText('The test reached ops').waitFor();
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/ops']);
    await page.getByRole('link', { name: 'Rules' }).click();
    await page.getByLabel('Name of the rule').fill('failures');
    await page.getByLabel('ops', { exact: true }).check();
    await page.getByLabel('Seconds until the first notification').fill('0');
    await page.getByRole('button', { name: 'Create rule' }).click();
    await page.getByText('The rule failures is created.').waitFor();
    const [rule] = (await api('GET', '/api/v1/alerts/rules')).items;
    expect(rule).toMatchObject({
      name: 'failures',
      kind: 'delivery.failed',
      channels: ['ops'],
      groupWaitMs: 0,
    });
    expect(await auditedActions(studio)).toEqual(
      expect.arrayContaining(['alert_channel.create', 'alert.test', 'alert_rule.create']),
    );
    expect(problems).toEqual([]);
  });

  test('a failed test of a channel says why', async () => {
    receiver.answers.set('/ops', 500);
    const { page } = await openPage(studio, '/studio/alerts?view=channels');
    await page.getByRole('button', { name: 'Test ops' }).click();
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('The test of ops failed');
    receiver.answers.delete('/ops');
  });

  test('an alert is opened with its notification, acknowledged, silenced and resolved', async () => {
    receiver.answers.set('/broken', 500);
    const body = { url: `${receiver.url}/broken`, types: ['broken.*'], retrySchedule: [] };
    await api('POST', '/api/v1/endpoints', body);
    await api('POST', '/api/v1/messages', { type: 'broken.one', data: 1 });
    const { page, problems } = await openPage(studio, '/studio/alerts');
    await page.getByRole('region', { name: 'Alerts' }).getByRole('link').first().click();
    await page.locator('.verdict', { hasText: 'firing' }).waitFor();
    await page.locator('tbody .status', { hasText: 'sent' }).first().waitFor();
    await page.getByRole('button', { name: 'Acknowledge' }).click();
    await page.getByText('The alert is acknowledged.').waitFor();
    await page.getByRole('button', { name: 'Silence…' }).click();
    await page.getByRole('button', { name: 'Silence', exact: true }).click();
    await page.getByText('Alerts that match are not sent until the silence ends.').waitFor();
    await page.getByRole('button', { name: 'Resolve' }).click();
    await page.locator('.verdict', { hasText: 'resolved' }).waitFor();
    await page.goto(`${studio.url}/studio/alerts?view=silences`);
    await page.getByRole('button', { name: 'End' }).click();
    await page.getByText('The silence has ended.').waitFor();
    expect(await auditedActions(studio)).toEqual(
      expect.arrayContaining(['alert.acknowledge', 'alert.resolve', 'alert_silence.create']),
    );
    expect(problems).toEqual([]);
  });

  test('a rule is changed and deleted', async () => {
    const { page, problems } = await openPage(studio, '/studio/alerts?view=rules');
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Edit failures' }).click();
    await page.getByLabel('Severity').selectOption('critical');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The rule failures is changed.').waitFor();
    expect((await api('GET', '/api/v1/alerts/rules/failures')).severity).toBe('critical');
    expect(problems).toEqual([]);
  });

  test('a viewer sees alerts and rules, and no button that would be refused', async () => {
    const { page } = await openAs(studio, 'viewer', '/studio/alerts?view=rules');
    await page.getByRole('region', { name: 'Rules' }).getByText('failures').waitFor();
    expect(await page.locator('main button').allTextContents()).toEqual(['Copy']);
    await page.goto(`${studio.url}/studio/alerts?view=channels`);
    await page.getByRole('region', { name: 'Channels' }).getByText('ops').first().waitFor();
    expect(await page.locator('main button').allTextContents()).toEqual(['Copy']);
  });

  test('another tenant sees none of them', async () => {
    const { page } = await openAs(studio, 'admin', '/studio/alerts', 'tenant-b');
    await page.getByText('No alert matches.').waitFor();
    await page.goto(`${studio.url}/studio/alerts?view=rules`);
    await page.getByText('There are no rules.').waitFor();
  });

  test('the screens are accessible and fit in both themes and widths', async () => {
    const [alert] = (await api('GET', '/api/v1/alerts')).items;
    const views = ['rules', 'channels', 'silences'].map((view) => `/studio/alerts?view=${view}`);
    const paths = ['/studio/alerts', `/studio/alerts/${alert.id}`, ...views];
    expect(await faultsInAllThemes(studio, paths)).toEqual([]);
  });
});
