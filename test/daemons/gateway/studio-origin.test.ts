import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../../src/kit/files/paths.ts';
import { startUpstream } from './support/echo-upstream.ts';
import { CI_HEADERS, CI_TOKEN, startGateway, type TestGateway } from './support/start-gateway.ts';

const HOSTILE_PAGE = '<script>fetch("/api/v1/tokens")</script>';

async function sessionOf(gateway: TestGateway) {
  const response = await gateway.fetch('/studio/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: CI_TOKEN }),
  });
  const { csrfToken } = (await response.json()) as { csrfToken: string };
  const cookie = response.headers.getSetCookie()[0]!.split(';')[0]!;
  return { cookie, 'x-svc-csrf': csrfToken };
}

test('a service gets the identity of a studio session, and neither its cookie nor its CSRF token', async () => {
  const gateway = await startGateway();
  const session = await sessionOf(gateway);
  const headers = { ...session, cookie: `theme=dark; ${session.cookie}; lang=en` };
  expect((await gateway.fetch('/api/v1/anything', { headers })).status).toBe(200);
  const [seen] = gateway.upstream.seen;
  expect(seen!.headers).toMatchObject({
    'x-tenant-id': 'acme',
    'x-svc-host-id': 'ci',
    cookie: 'theme=dark; lang=en',
  });
  expect(seen!.headers['x-svc-csrf']).toBeUndefined();
  await gateway.fetch('/api/v1/anything', { headers: session });
  expect(gateway.upstream.seen[1]!.headers.cookie).toBeUndefined();
});

test('a plugin route cannot set a session cookie, and its HTML runs in a sandbox', async () => {
  const upstream = await startUpstream((_request, response) => {
    response.setHeader('set-cookie', ['svc-session-4000=stolen; Path=/', 'own=1']);
    response.setHeader('content-type', 'text/html').end(HOSTILE_PAGE);
  });
  const gateway = await startGateway({ upstream });
  const response = await gateway.fetch('/api/v1/plugins/desk/page', { headers: CI_HEADERS });
  expect(response.headers.getSetCookie()).toEqual(['own=1']);
  expect(response.headers.get('content-security-policy')).toBe('sandbox');
  expect(response.headers.get('x-content-type-options')).toBe('nosniff');
});

test('HTML of an own upstream runs in a sandbox too, unless the config says otherwise', async () => {
  const upstream = await startUpstream((_request, response) => {
    response.setHeader('content-type', 'text/html').end(HOSTILE_PAGE);
  });
  for (const [sandbox, expected] of [
    [undefined, 'sandbox'],
    [false, null],
  ] as const) {
    const workflow = { url: upstream.url, ...(sandbox === undefined ? {} : { sandbox }) };
    const gateway = await startGateway({ upstream, gateway: { upstreams: { workflow } } });
    const response = await gateway.fetch('/workflows/page', { headers: CI_HEADERS });
    expect(await response.text()).toBe(HOSTILE_PAGE);
    expect(response.headers.get('content-security-policy')).toBe(expected);
  }
});

test.skipIf(!existsSync(join(packageRoot, 'dist/studio')))(
  'the pages of the studio load nothing from elsewhere, are framed by nobody, and are compressed',
  async () => {
    const gateway = await startGateway();
    const page = await gateway.fetch('/studio/runs/some-run');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-security-policy')).toBe(
      "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    );
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    const [script] = /\/studio\/assets\/[^"]+\.js/.exec(await page.text())!;
    const asset = await gateway.fetch(script, { headers: { 'accept-encoding': 'gzip, br' } });
    expect(asset.headers.get('content-encoding')).toBe('br');
    expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    const plain = await gateway.fetch(script, { headers: { 'accept-encoding': 'br;q=0, gzip' } });
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect((await gateway.fetch('/studio/assets/..%2f..%2fcli.js')).status).toBe(400);
    expect((await gateway.fetch('/studio/assets/cli.js')).status).toBe(404);
  },
);

test('the error for a missing file of the studio is not cached, as another gateway may have the file', async () => {
  const gateway = await startGateway();
  const response = await gateway.fetch('/studio/assets/missing.js');
  expect(response.status).toBe(404);
  expect(response.headers.get('cache-control')).toBeNull();
});
