import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, apiOf } from './support/api.ts';
import { auditedActions, faultsInAllThemes, openAs, openPage } from './support/people.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const CONFIG = { outgoing: { allowPrivateAddresses: true } };

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'endpoints and messages in the studio', () => {
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

  const createEndpoint = (path: string, more: object = {}) =>
    api('POST', '/api/v1/endpoints', { url: receiver.url + path, ...more });
  const publish = async (type: string, data: unknown, more: object = {}): Promise<string> =>
    (await api('POST', '/api/v1/messages', { type, data, ...more })).id;
  const statusOf = async (id: string): Promise<string[]> =>
    (await api('GET', `/api/v1/messages/${id}`)).endpoints.map(({ status }: { status: string }) => status);
  const at = (path: string) => receiver.requests.filter((request) => request.path === path);

  test('without endpoints and messages, the screens teach the commands', async () => {
    const { page, problems } = await openPage(studio, '/studio/endpoints');
    await page.getByText('svc endpoints create https://example.com/webhooks').waitFor();
    await page.goto(`${studio.url}/studio/messages`);
    await page.getByText('No message matches.').waitFor();
    expect(problems).toEqual([]);
  });

  test('an endpoint is created by keyboard, its secret is shown once, and a test reaches its receiver', async () => {
    const { page, problems } = await openPage(studio, '/studio/endpoints');
    await page.getByLabel('URL', { exact: true }).focus();
    await page.keyboard.type(`${receiver.url}/made`);
    await page.keyboard.press('Tab');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('made.*');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Secret of the endpoint' }).waitFor();
    const secret = (await page.getByText(/^whsec_/).textContent())!;
    await page.getByText("from 'standardwebhooks'").waitFor();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    expect(await page.content()).not.toContain(secret);
    await page.getByRole('link', { name: `${receiver.url}/made` }).click();
    await page.getByRole('button', { name: 'Send test' }).click();
    await page.getByText('HTTP 200').first().waitFor();
    const [sent] = at('/made');
    expect(new Webhook(secret).verify(sent!.body, sent!.headers as never)).toMatchObject({
      type: 'webhook.test',
    });
    const actions = await auditedActions(studio);
    expect(actions).toEqual(expect.arrayContaining(['endpoint.create', 'endpoint.test']));
    expect(problems).toEqual([]);
  });

  test('a refused URL names the field and the reason', async () => {
    const { page } = await openPage(studio, '/studio/endpoints');
    await page.getByLabel('URL', { exact: true }).fill('ftp://example.com/');
    await page.getByRole('button', { name: 'Create endpoint' }).click();
    await expect.poll(() => page.locator('#new-endpoint-url-issue').textContent()).not.toBe('');
    expect(await page.getByLabel('URL', { exact: true }).getAttribute('aria-invalid')).toBe('true');
  });

  test('an endpoint is changed, disabled, enabled, rotated and deleted', async () => {
    const { id } = await createEndpoint('/life', { types: ['a.b'] });
    const { page, problems } = await openPage(studio, `/studio/endpoints/${id}`);
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByText('Edit the endpoint').click();
    await page.getByLabel('Event types').fill('order.created, order.*');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The endpoint is changed.').waitFor();
    expect((await api('GET', `/api/v1/endpoints/${id}`)).types).toEqual(['order.created', 'order.*']);
    await page.getByRole('button', { name: /^Disable/ }).click();
    await page.locator('.facts', { hasText: 'by a person' }).waitFor();
    await page.getByText('Nothing is sent to a disabled endpoint.').waitFor();
    await page.getByRole('button', { name: /^Enable/ }).click();
    await page.locator('.facts .status', { hasText: 'active' }).waitFor();
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    await page.getByText('The previous one remains valid for 24 hours.').waitFor();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByText('Previous secret valid until').waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.waitForURL(/\/studio\/endpoints$/);
    expect(await auditedActions(studio)).toEqual(
      expect.arrayContaining(['endpoint.update', 'endpoint.rotate', 'endpoint.delete']),
    );
    expect(problems).toEqual([]);
  });

  test('a message is sent as JSON, and its delivery, attempts and data are shown', async () => {
    await createEndpoint('/shown', { types: ['shown.*'] });
    const { page, problems } = await openPage(studio, '/studio/messages');
    await page.getByText('Send a message').click();
    await page.getByLabel('Event type of the message').fill('shown.one');
    await page.getByRole('button', { name: 'Send message' }).click();
    await page.getByText('The message goes to 1 endpoint.').waitFor();
    await page.getByRole('link', { name: 'Open the message' }).click();
    await page.getByRole('heading', { name: 'shown.one', level: 1 }).waitFor();
    await page.locator('.verdict', { hasText: '1 succeeded' }).waitFor();
    await page.getByRole('region', { name: 'Attempts' }).getByText('HTTP 200').waitFor();
    await page.getByText('Start of the answer').click();
    await page.getByText('taken').waitFor();
    expect(problems).toEqual([]);
  });

  test('dead letters are found, chosen and replayed by keyboard alone', async () => {
    receiver.answers.set('/dead', 500);
    const { id: endpointId } = await createEndpoint('/dead', { types: ['dead.*'], retrySchedule: [] });
    const ids = [await publish('dead.one', 1), await publish('dead.two', 2)];
    for (const id of ids) await expect.poll(() => statusOf(id)).toEqual(['dead']);
    receiver.answers.delete('/dead');
    const { page, problems } = await openPage(studio, '/studio/messages');
    await page.getByRole('link', { name: 'Dead letters' }).click();
    await expect.poll(() => page.locator('.row').count()).toBe(2);
    await page.getByRole('listbox', { name: 'Messages' }).focus();
    for (const key of ['x', 'j', 'x']) await page.keyboard.press(key);
    await page.getByText('2 messages chosen').waitFor();
    await page.getByRole('button', { name: 'Replay chosen' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Replay 2', exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('Replay: 2 done.').waitFor();
    for (const id of ids) await expect.poll(() => statusOf(id)).toEqual(['succeeded']);
    expect(new Set(at('/dead').map(({ headers }) => headers['webhook-id']))).toEqual(new Set(ids));
    await page.goto(`${studio.url}/studio/endpoints/${endpointId}`);
    await page.getByText('50 % of 4 attempts').waitFor();
    expect(problems).toEqual([]);
  });

  test('all dead letters of an endpoint are counted, confirmed and replayed', async () => {
    receiver.answers.set('/range', 503);
    const { id: endpointId } = await createEndpoint('/range', { types: ['range.*'], retrySchedule: [] });
    const ids = [await publish('range.one', 1), await publish('range.two', 2)];
    for (const id of ids) await expect.poll(() => statusOf(id)).toEqual(['dead']);
    receiver.answers.delete('/range');
    const { page, problems } = await openPage(studio, `/studio/endpoints/${endpointId}`);
    await page.getByRole('button', { name: 'Replay dead letters…' }).click();
    await page.getByRole('button', { name: 'Replay 2', exact: true }).click();
    await page.getByText('Replay: 2 done.').waitFor();
    for (const id of ids) await expect.poll(() => statusOf(id)).toEqual(['succeeded']);
    await page.getByRole('button', { name: 'Replay dead letters…' }).click();
    await page.getByText('Nothing matches.').waitFor();
    expect(problems).toEqual([]);
  });

  test('a message is replayed to one endpoint from its own screen', async () => {
    await createEndpoint('/again', { types: ['again.*'] });
    const id = await publish('again.one', { n: 1 });
    await expect.poll(() => statusOf(id)).toEqual(['succeeded']);
    const { page, problems } = await openPage(studio, `/studio/messages/${id}`);
    await page.getByRole('button', { name: `Replay to ${receiver.url}/again` }).click();
    await page.getByText('The message is sent again to 1 endpoint.').waitFor();
    await expect.poll(() => at('/again').length).toBe(2);
    expect(problems).toEqual([]);
  });

  test('the screens are accessible and fit in both themes and widths', async () => {
    const { items: endpoints } = await api('GET', '/api/v1/endpoints');
    const { items: messages } = await api('GET', '/api/v1/messages');
    const paths = [
      ...['/studio/endpoints', `/studio/endpoints/${endpoints[0].id}`],
      ...['/studio/messages', `/studio/messages/${messages[0].id}`],
    ];
    expect(await faultsInAllThemes(studio, paths)).toEqual([]);
  });

  test('a viewer sees endpoints and messages, and no button that would be refused', async () => {
    const { items } = await api('GET', '/api/v1/messages');
    const { page } = await openAs(studio, 'viewer', '/studio/endpoints');
    await page.getByRole('link', { name: `${receiver.url}/made` }).click();
    await page.getByRole('heading', { name: `${receiver.url}/made`, level: 1 }).waitFor();
    const buttons = () => page.locator('main button').allTextContents();
    expect(await buttons()).toEqual(['Copy']);
    await page.goto(`${studio.url}/studio/messages`);
    await page.locator('.row').first().waitFor();
    expect(await buttons()).toEqual(['Pause (live)', 'Copy']);
    await page.goto(`${studio.url}/studio/messages/${items[0].id}`);
    await page.getByRole('heading', { name: items[0].type, level: 1 }).waitFor();
    expect(await buttons()).toEqual(['Copy']);
  });

  test('another tenant sees neither of them', async () => {
    const { items } = await api('GET', '/api/v1/messages');
    const { page } = await openAs(studio, 'admin', '/studio/endpoints', 'tenant-b');
    await page.getByText('No endpoint matches.').waitFor();
    await page.goto(`${studio.url}/studio/messages`);
    await page.getByText('No message matches.').waitFor();
    await page.goto(`${studio.url}/studio/messages/${items[0].id}`);
    await page.locator('.state.failure').first().waitFor();
    expect(await page.locator('main').textContent()).not.toContain(items[0].type);
  });
});
