import { createHmac } from 'node:crypto';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio, withFiles } from './support/studio.ts';

const SENDERS_SECRET = 'the-secret-of-the-sender';
const ON_ORDER = {
  id: 'on-order',
  on: { webhook: { pluginId: '@acme/orders', event: 'created' } },
  jobs: { main: { steps: [{ id: 'note', uses: 'set', with: { sku: `\${{ input.sku }}` } }] } },
};

/** Delivers as a sender does whose secret the gateway does not know. */
async function send(studio: Studio, payload: object): Promise<Response> {
  const body = JSON.stringify(payload);
  const signature = createHmac('sha256', SENDERS_SECRET).update(body).digest('hex');
  return fetch(`${studio.url}/webhooks/${encodeURIComponent('@acme/orders')}/created`, {
    method: 'POST',
    body,
    headers: { 'x-svc-namespace': 'default', 'x-signature': `sha256=${signature}` },
  });
}

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'a refused delivery in the studio', () => {
  let studio: Studio;

  beforeAll(async () => {
    studio = await startStudio({}, withFiles({ 'workflows/on-order.yaml': JSON.stringify(ON_ORDER) }));
    await studio.svc('webhooks', 'provision', '@acme/orders', 'created');
  });
  afterAll(() => studio?.close());

  test('is found, explained, corrected and replayed with the mouse, up to the run it started', async () => {
    expect((await send(studio, { sku: 'socks', delivery: { id: 'one' } })).status).toBe(401);
    const { page, problems, context } = await studio.open('/studio/', { isSignedIn: false });
    await page.addInitScript(`addEventListener('keydown', () => { window.keys = true; }, true);`);
    let clicks = 0;
    const click = async (target: Locator): Promise<void> => {
      clicks++;
      await target.click();
    };
    await page.goto((await studio.svc('studio')).url);

    await click(page.getByRole('navigation').getByRole('link', { name: 'Deliveries' }));
    const row = page.locator('.row', { hasText: 'refused' });
    await row.getByText('wrong_secret').waitFor();
    await click(row);

    await page.getByText('The signature was made with another secret').waitFor();
    await page.getByText('Enter the secret that the sender uses').waitFor();
    await page.getByText('When the cause is corrected, replay it.').waitFor();
    await page.getByText('socks').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await click(page.getByRole('link', { name: 'Enter, create or rotate the secret' }));

    await click(page.getByLabel('The sender has a secret already'));
    const secret = page.getByLabel('Secret of the sender');
    await click(secret);
    await secret.fill(SENDERS_SECRET);
    await click(page.getByRole('button', { name: 'Save the secret' }));

    await page.getByRole('heading', { name: 'Replay the refused delivery' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await click(page.getByRole('button', { name: 'Replay the delivery' }));

    await page.locator('.verdict', { hasText: 'succeeded' }).waitFor();
    await page.getByText('It started a run. Next: open').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await click(page.getByRole('link', { name: 'the run of on-order' }));

    await page.getByRole('heading', { name: /on-order/, level: 1 }).waitFor();
    await page.locator('.verdict', { hasText: 'succeeded' }).waitFor();
    expect(clicks).toBe(8);
    expect(await page.evaluate('window.keys')).toBeUndefined();
    expect(problems).toEqual([]);
    await context.close();
  });

  test('that is still not authentic runs after a warning, and only then', async () => {
    await studio.svc('webhooks', 'provision', '@acme/orders', 'plain');
    const path = `/webhooks/${encodeURIComponent('@acme/orders')}/plain`;
    const refused = await fetch(studio.url + path, {
      method: 'POST',
      body: '{"by":"anybody"}',
      headers: { 'x-svc-namespace': 'default', 'x-token': 'forged' },
    });
    const id = refused.headers.get('x-webhook-id');
    const { page, problems, context } = await studio.open(`/studio/deliveries/${id}`, { width: 390 });
    await page.getByRole('button', { name: 'Replay the delivery' }).click();
    await page.getByText('is still not authentic (wrong_secret), so it was not replayed').waitFor();
    await page.getByText('it can be forged: read its body first').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Run it although it is not authentic' }).click();
    await page.getByText('Replay of').waitFor();
    await page.getByText('trusted').waitFor();
    await page.goto(`${studio.url}/studio/deliveries/${id}`);
    await page.getByRole('link', { name: 'open the replay' }).waitFor();
    const { items } = await studio.svc('audit', 'list');
    expect(items.map(({ action }: { action: string }) => action)).toContain('delivery.trust');
    expect(problems).toEqual([]);
    await context.close();
  });
});
