import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import type { Page } from 'playwright-core';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { dataFolder } from '../../src/supervisor/data-folder.ts';
import { readKeys } from '../../src/supervisor/keys-file.ts';
import { type Api, apiOf } from './support/api.ts';
import { openPage, settled } from './support/people.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';
import { BROWSER_MISSING, pageFaults, type Studio, type StudioPage, startStudio } from './support/studio.ts';

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'the portal of an application', () => {
  let studio: Studio;
  let receiver: Receiver;
  let api: Api;

  beforeAll(async () => {
    receiver = await startReceiver();
    studio = await startStudio({ outgoing: { allow: ['127.0.0.1'] } });
    api = await apiOf(studio);
    for (const application of ['customer-7', 'customer-8', null])
      await api('POST', '/api/v1/endpoints', { url: `${receiver.url}/${application}`, application });
    await api('POST', '/api/v1/messages', { type: 'seven.one', data: 7, application: 'customer-7' });
    await api('POST', '/api/v1/messages', { type: 'eight.one', data: 8, application: 'customer-8' });
  });
  afterAll(async () => {
    await studio?.close();
    await receiver?.close();
  });

  const createLink = async (): Promise<{ id: string; path: string }> => {
    const { id, url } = await api('POST', '/api/v1/endpoints/portal', { application: 'customer-7' });
    const { pathname, hash } = new URL(url);
    return { id, path: pathname + hash };
  };
  /** Address of a link of customer-7 that ends in this many seconds. The key is that of the platform. */
  async function signLink(seconds: number): Promise<string> {
    const { id } = await createLink();
    const { internalSecret } = readKeys(dataFolder(join(studio.platform.folder, '.svc')))!;
    const now = Math.floor(Date.now() / 1000);
    const token = await new SignJWT({ namespaceId: 'default', application: 'customer-7' })
      .setProtectedHeader({ alg: 'HS256' })
      .setAudience('portal')
      .setIssuedAt(now - 3600)
      .setExpirationTime(now + seconds)
      .setJti(id)
      .sign(createHmac('sha256', internalSecret).update('portal links').digest());
    return `/studio/portal#token=svcp_${token}`;
  }
  async function openPortal(options: { theme?: 'light' | 'dark'; width?: number } = {}): Promise<StudioPage> {
    const { path } = await createLink();
    const opened = await studio.open(path, { ...options, isSignedIn: false });
    onTestFinished(() => opened.context.close());
    await settled(opened.page);
    return opened;
  }
  const main = (page: Page) => page.locator('main').textContent();

  test('the link is made in the studio, and opens the endpoints of its application only', async () => {
    const { page, problems } = await openPage(studio, '/studio/endpoints');
    await page.getByText('Links for customers').click();
    await page.getByLabel('Application of the link').fill('customer-7');
    await page.getByRole('button', { name: 'Create link' }).click();
    const url = (await page.getByText('/studio/portal#token=').first().textContent())!;
    const { pathname, hash } = new URL(url);
    const portal = await studio.open(pathname + hash, { isSignedIn: false });
    onTestFinished(() => portal.context.close());
    await portal.page.getByRole('link', { name: `${receiver.url}/customer-7` }).waitFor();
    expect(await main(portal.page)).not.toContain('customer-8');
    expect(await main(portal.page)).not.toContain('/null');
    expect([...problems, ...portal.problems]).toEqual([]);
  });

  test('the token is neither in the address nor stored, and a reload asks for the link', async () => {
    const { page } = await openPortal();
    await page.getByRole('link', { name: `${receiver.url}/customer-7` }).waitFor();
    expect(new URL(page.url()).hash).toBe('');
    const stored = 'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])';
    expect(await page.evaluate(stored)).toBe('[{},{},""]');
    await page.reload();
    await page.getByRole('heading', { name: 'This page needs a valid link' }).waitFor();
    expect(await pageFaults(page)).toEqual([]);
  });

  test('a customer creates an endpoint, tests it, and sees and replays its messages', async () => {
    const { page, problems } = await openPortal({ width: 390 });
    await page.getByLabel('URL', { exact: true }).fill(`${receiver.url}/own`);
    await page.getByRole('button', { name: 'Create endpoint' }).click();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByRole('link', { name: `${receiver.url}/own` }).click();
    await page.getByRole('button', { name: 'Send test' }).click();
    await page.getByText('HTTP 200').first().waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Messages', exact: true }).click();
    await page.locator('.row', { hasText: 'seven.one' }).click();
    await page.getByRole('heading', { name: 'seven.one', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Replay', exact: true }).first().click();
    await page.getByText('The message is sent again').waitFor();
    const { items } = await studio.svc('audit', 'list');
    const actors = items.map(({ actor }: { actor: string }) => actor);
    expect(actors).toContain('portal:customer-7');
    expect(problems).toEqual([]);
  });

  test('messages of another application do not exist for it, not even by their address', async () => {
    const { page } = await openPortal();
    const { items } = await api('GET', '/api/v1/messages?application=customer-8');
    const { items: endpoints } = await api('GET', '/api/v1/endpoints?application=customer-8');
    await page.getByRole('navigation').getByRole('link', { name: 'Messages', exact: true }).click();
    await page.locator('.row').first().waitFor();
    expect(await main(page)).not.toContain('eight.one');
    for (const search of [`message=${items[0].id}`, `endpoint=${endpoints[0].id}`]) {
      await page.evaluate(
        `history.pushState(null, '', '/studio/portal?${search}'); dispatchEvent(new PopStateEvent('popstate'))`,
      );
      await page.locator('.state.failure').first().waitFor();
      expect(await main(page)).not.toMatch(/eight|customer-8/);
    }
  });

  test('the rest of the studio is not reachable with the link, and a session does not reach the portal', async () => {
    const { page } = await openPortal();
    expect(await page.getByRole('link').allTextContents()).not.toContain('Deliveries');
    await page.goto(`${studio.url}/studio/deliveries`);
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor();
    // The operator is signed in here. The calls of the portal must not use that session.
    const { page: own } = await openPage(studio, '/studio/');
    const calls: string[] = [];
    own.on('request', (request) => {
      if (request.url().includes('/api/v1/')) calls.push(request.headers().cookie ?? 'no cookie');
    });
    const { path } = await createLink();
    await own.goto('about:blank');
    calls.length = 0;
    await own.goto(studio.url + path);
    await own.getByRole('link', { name: `${receiver.url}/customer-7` }).waitFor();
    expect(new Set(calls)).toEqual(new Set(['no cookie']));
    expect(await main(own)).not.toContain('customer-8');
  });

  test('a revoked link leads to a page that says so', async () => {
    const { id, path } = await createLink();
    const { page, context } = await studio.open(path, { isSignedIn: false });
    onTestFinished(() => context.close());
    await page.getByRole('link', { name: `${receiver.url}/customer-7` }).waitFor();
    await api('DELETE', `/api/v1/endpoints/portal?id=${id}`);
    await page.getByRole('navigation').getByRole('link', { name: 'Messages', exact: true }).click();
    await page.getByRole('heading', { name: 'This page needs a valid link' }).waitFor();
    expect(await main(page)).not.toContain('customer-7');
  });

  test('an expired link leads to a page that says so, and shows nothing of the application', async () => {
    const valid = await studio.open(await signLink(600), { isSignedIn: false });
    onTestFinished(() => valid.context.close());
    await valid.page.getByRole('link', { name: `${receiver.url}/customer-7` }).waitFor();
    const expired = await studio.open(await signLink(-1), { isSignedIn: false });
    onTestFinished(() => expired.context.close());
    const { page, problems } = expired;
    await page.getByRole('heading', { name: 'This page needs a valid link' }).waitFor();
    await page.getByText('has expired or was withdrawn').waitFor();
    expect(await page.content()).not.toContain('customer-7');
    expect(await page.getByRole('navigation').count()).toBe(0);
    expect(new URL(page.url()).hash).toBe('');
    expect([...(await pageFaults(page)), ...problems]).toEqual([]);
  });

  test('a customer rotates the secret of an endpoint, and the new one is shown once', async () => {
    const { secret: before } = await api('POST', '/api/v1/endpoints', {
      ...{ url: `${receiver.url}/rotated`, application: 'customer-7', types: ['rotated.*'] },
    });
    const { page, problems } = await openPortal();
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('link', { name: `${receiver.url}/rotated` }).click();
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    await page.getByText('The previous one remains valid for 24 hours.').waitFor();
    const secret = (await page.getByText(/^whsec_/).textContent())!;
    expect(secret).not.toBe(before);
    await page.getByText('Previous secret valid until').waitFor();
    await page.getByRole('button', { name: 'Send test' }).click();
    await page.getByText('HTTP 200').first().waitFor();
    const { body, headers } = receiver.requests.find(({ path }) => path === '/rotated')!;
    for (const each of [secret, before])
      expect(new Webhook(each).verify(body, headers as never)).toMatchObject({ type: 'webhook.test' });
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await expect.poll(() => page.content()).not.toContain('whsec_');
    await page.getByRole('navigation').getByRole('link', { name: 'Endpoints', exact: true }).click();
    await page.getByRole('link', { name: `${receiver.url}/rotated` }).click();
    await page.getByText('Previous secret valid until').waitFor();
    expect(await page.content()).not.toContain('whsec_');
    const { items } = await studio.svc('audit', 'list');
    expect(items).toContainEqual(
      expect.objectContaining({ actor: 'portal:customer-7', action: 'endpoint.rotate' }),
    );
    expect(problems).toEqual([]);
  });

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      test(`the portal is accessible in the ${theme} theme at ${width} px`, async () => {
        const { page, problems } = await openPortal({ theme, width });
        const faults = await pageFaults(page);
        await page.getByRole('link', { name: `${receiver.url}/customer-7` }).click();
        await page.getByRole('heading', { name: 'Attempts' }).waitFor();
        await settled(page);
        faults.push(...(await pageFaults(page)));
        await page.getByRole('navigation').getByRole('link', { name: 'Messages', exact: true }).click();
        await page.locator('.row').first().waitFor();
        faults.push(...(await pageFaults(page)));
        expect([...faults, ...problems]).toEqual([]);
      });
    }
  }
});
