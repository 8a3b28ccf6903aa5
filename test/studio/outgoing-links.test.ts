import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, apiOf } from './support/api.ts';
import { openPage } from './support/people.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';
import { addShop } from './support/shop-plugin.ts';
import { BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const RULE = { namespace: 'default', channels: [], groupWaitMs: 0 };
const CONFIG = {
  outgoing: { allowPrivateAddresses: true },
  alerts: {
    intervalMs: 200,
    rules: {
      deliveries: { ...RULE, kind: 'delivery.failed' },
      runs: { ...RULE, kind: 'run.failed' },
    },
  },
};

describe.skipIf(BROWSER_MISSING)(
  BROWSER_MISSING ?? 'links between deliveries, runs, messages and alerts',
  () => {
    let studio: Studio;
    let receiver: Receiver;
    let api: Api;

    beforeAll(async () => {
      receiver = await startReceiver();
      studio = await startStudio(CONFIG, addShop);
      api = await apiOf(studio);
      await studio.svc('webhooks', 'provision', 'shop', 'paid');
      await api('POST', '/api/v1/endpoints', { url: `${receiver.url}/shop`, retrySchedule: [] });
    });
    afterAll(async () => {
      await studio?.close();
      await receiver?.close();
    });

    const section = (page: Page, title: string) =>
      page.locator('section.section', { has: page.getByRole('heading', { name: title, exact: true }) });

    test('a delivery links to the message that it sent and to its alert, and both lead back', async () => {
      const sent = await studio.platform.svc(
        ...['webhooks', 'send', 'shop', 'paid', '--data', '{"order":"A-1","amount":3,"fails":true}'],
      );
      const { webhookId } = sent.envelope.result;
      const { page, problems } = await openPage(studio, `/studio/deliveries/${webhookId}`);
      await section(page, 'Messages').getByRole('link', { name: 'order.paid' }).click();
      await page.getByRole('heading', { name: 'order.paid', level: 1 }).waitFor();
      await section(page, 'Sent by').getByRole('link', { name: 'delivery shop paid' }).click();
      await page.waitForURL(`**/studio/deliveries/${webhookId}`);
      await section(page, 'Alerts').locator('li a').first().click();
      await page.locator('.verdict', { hasText: 'firing' }).waitFor();
      await page
        .locator('.facts')
        .getByRole('link', { name: `delivery ${webhookId}` })
        .click();
      await page.waitForURL(`**/studio/deliveries/${webhookId}`);
      await section(page, 'Messages').getByRole('link', { name: 'All messages of the trace' }).click();
      await expect.poll(() => page.locator('.row').count()).toBe(1);
      const { traceId } = await api('GET', `/api/v1/webhooks/deliveries/${webhookId}`);
      expect(await page.locator('footer.same').textContent()).toContain(
        `svc messages list --trace ${traceId}`,
      );
      expect((await studio.svc('messages', 'list', '--trace', traceId)).items).toHaveLength(1);
      await page.goto(`${studio.url}/studio/alerts?object=${webhookId}`);
      await page.getByRole('region', { name: 'Alerts' }).getByRole('link').first().waitFor();
      expect((await studio.svc('alerts', 'list', '--object', webhookId)).items).toMatchObject([
        { kind: 'delivery.failed', object: { id: webhookId } },
      ]);
      expect(problems).toEqual([]);
    });

    test('a run links to the message that it sent and to its alert, and both lead back', async () => {
      const { id } = await studio.svc('workflows', 'run', 'bill', '--input', '{"order":"B-1","fails":true}');
      const { page, problems } = await openPage(studio, `/studio/runs/${id}`);
      await section(page, 'Messages').getByRole('link', { name: 'order.paid' }).click();
      await page.getByRole('heading', { name: 'order.paid', level: 1 }).waitFor();
      await section(page, 'Sent by').getByRole('link', { name: 'run bill' }).click();
      await page.waitForURL(`**/studio/runs/${id}`);
      await section(page, 'Alerts').locator('li a').first().click();
      await page.locator('.verdict', { hasText: 'firing' }).waitFor();
      await page
        .locator('.facts')
        .getByRole('link', { name: `run ${id}` })
        .click();
      await page.waitForURL(`**/studio/runs/${id}`);
      expect(problems).toEqual([]);
    });

    test('a message that an endpoint did not take links to its alert, and the list of endpoints shows the share of successes', async () => {
      receiver.answers.set('/shop', 500);
      const { id } = await api('POST', '/api/v1/messages', { type: 'order.lost', data: 1 });
      const { page, problems } = await openPage(studio, `/studio/messages/${id}`);
      await section(page, 'Alerts').locator('li a').first().click();
      await page.locator('.verdict', { hasText: 'firing' }).waitFor();
      await page
        .locator('.facts')
        .getByRole('link', { name: /^message / })
        .click();
      await page.waitForURL(`**/studio/messages/${id}`);
      expect(await section(page, 'Sent by').count()).toBe(0);
      await page.goto(`${studio.url}/studio/endpoints`);
      await page.getByRole('region', { name: 'Endpoints' }).getByText('66 % of 3 attempts').waitFor();
      const [endpoint] = (await studio.svc('endpoints', 'list')).items;
      expect(endpoint.recentAttempts).toEqual({ total: 3, succeeded: 2 });
      expect(problems).toEqual([]);
    });

    const NEW = [
      ['New endpoint', 'new-endpoint-url'],
      ['New portal link', 'portal-application'],
      ['New message', 'message-type'],
      ['New alert rule', 'rule-name'],
      ['New alert channel', 'channel-name'],
      ['New silence', 'silence-kind'],
      ['New secret', 'secret-name'],
      ['New connection', 'connection-name'],
    ] as const;

    test('the palette opens the forms for new objects with the focus in their first field', async () => {
      const { page, problems } = await openPage(studio, '/studio/');
      for (const [label, id] of NEW) {
        await page.keyboard.press('Control+k');
        await page.getByRole('combobox', { name: 'Screen, name or id' }).waitFor();
        await page.keyboard.type(label);
        const first = page.getByRole('listbox', { name: 'Matches' }).getByRole('option').first();
        await expect.poll(() => first.textContent()).toContain(label);
        await page.keyboard.press('Enter');
        await expect.poll(() => page.evaluate<string>('document.activeElement.id')).toBe(id);
      }
      expect(problems).toEqual([]);
    });

    test('the palette opens screens, and objects by their names', async () => {
      await studio.platform.svc('alerts', 'add-rule', 'lost', '--kind', 'endpoint.disabled');
      const { page, problems } = await openPage(studio, '/studio/');
      const targets = [
        ...(['Endpoints', 'Messages', 'Alerts', 'Secrets', 'Connections'] as const).map(
          (name) => [name, `/studio/${name.toLowerCase()}`] as const,
        ),
        ['Alert rules', '/studio/alerts?view=rules'],
        ['Alert channels', '/studio/alerts?view=channels'],
        ['Silences', '/studio/alerts?view=silences'],
        ['rule lost', '/studio/alerts?view=rules'],
        ['dead letters', '/studio/messages?status=dead'],
        ['disabled endpoints', '/studio/endpoints?disabled=true'],
      ] as const;
      for (const [text, path] of targets) {
        await page.keyboard.press('Control+k');
        await page.getByRole('combobox', { name: 'Screen, name or id' }).waitFor();
        await page.keyboard.type(text);
        const first = page.getByRole('listbox', { name: 'Matches' }).getByRole('option').first();
        await expect.poll(() => first.textContent()).toContain(text.split(' ').at(-1)!);
        await page.keyboard.press('Enter');
        await expect.poll(() => page.url()).toBe(studio.url + path);
      }
      expect(problems).toEqual([]);
    });
  },
);
