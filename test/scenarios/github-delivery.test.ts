import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import examples from '@octokit/webhooks-examples' with { type: 'json' };
import { sign } from '@octokit/webhooks-methods';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import type { AnyJson } from '../support/any-json.ts';
import { createPlatform, type Platform } from '../support/platform.ts';

/** GitHub's own sample payloads of one event. */
function samples(event: string): unknown[] {
  return (examples as unknown as Array<{ name: string; examples: unknown[] }>).find(
    ({ name }) => name === event,
  )!.examples;
}

interface Sent {
  status: number;
  headers: Headers;
  body: AnyJson;
}

describe('signed GitHub deliveries to a running platform', () => {
  let platform: Platform;
  let url: string;
  const secrets: Record<string, string> = {};

  /** Delivers as GitHub does: compact JSON, signed over its bytes, with a delivery id. */
  async function send(
    event: string,
    payload: unknown,
    extra: { id?: string; secret?: string; headers?: Record<string, string | null>; body?: string } = {},
  ): Promise<Sent> {
    const text = JSON.stringify(payload);
    const headers: Record<string, string | null> = {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/044aadd',
      'x-svc-namespace': 'default',
      'x-github-event': event,
      'x-github-delivery': extra.id ?? randomUUID(),
      'x-hub-signature-256': await sign(extra.secret ?? secrets[event]!, text),
      ...extra.headers,
    };
    const sent = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== null);
    const response = await fetch(`${url}/webhooks/github/${event}`, {
      method: 'POST',
      body: extra.body ?? text,
      headers: sent,
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }

  async function provision(event: string): Promise<{ secret: string; rotated: boolean; url: string }> {
    const { exitCode, envelope } = await platform.svc('webhooks', 'provision', 'github', event);
    expect([exitCode, envelope.ok]).toEqual([0, true]);
    return envelope.result;
  }

  beforeAll(async () => {
    platform = await createPlatform({ plugins: [join(packageRoot, 'examples/plugins/*')] });
    url = await platform.up();
    for (const event of ['issues', 'push']) {
      const provisioned = await provision(event);
      expect(provisioned.rotated).toBe(false);
      expect(new URL(provisioned.url).pathname).toBe(`/webhooks/github/${event}`);
      secrets[event] = provisioned.secret;
    }
  }, 60_000);
  afterAll(() => platform?.dispose(), 30_000);

  test('every sample payload of issues and push is handled, and the handler answers a summary of it', async () => {
    for (const event of ['issues', 'push']) {
      for (const payload of samples(event)) {
        const { status, body } = await send(event, payload);
        expect([event, status, body.status]).toEqual([event, 200, 'ok']);
        const { repository } = payload as { repository: { full_name: string } };
        expect(JSON.stringify(body.result)).toContain(repository.full_name);
      }
    }
  });

  test('the same delivery id again is 200 duplicate', async () => {
    const [payload] = samples('issues');
    const id = randomUUID();
    expect((await send('issues', payload, { id })).body.status).toBe('ok');
    const again = await send('issues', payload, { id });
    expect([again.status, again.body]).toEqual([200, { status: 'duplicate' }]);
  });

  test('tampered bytes are 401', async () => {
    const [payload] = samples('push');
    const body = JSON.stringify(payload).replace('refs/', 'refs /');
    const { status, body: reply } = await send('push', payload, { body });
    expect([status, reply.error.code]).toEqual([401, 'UNAUTHORIZED']);
  });

  test("another event's secret is 401", async () => {
    const [payload] = samples('push');
    expect((await send('push', payload, { secret: secrets.issues! })).status).toBe(401);
  });

  test('a missing namespace is 400', async () => {
    const { status, body } = await send('issues', samples('issues')[0], {
      headers: { 'x-svc-namespace': null },
    });
    expect([status, body.error.code]).toEqual([400, 'NAMESPACE_REQUIRED']);
  });

  test('an unknown event is 404', async () => {
    const { status, body } = await send('stars', {}, { secret: 'any' });
    expect([status, body.error.code]).toEqual([404, 'WEBHOOK_NOT_FOUND']);
  });

  test('more than 1 MB is 413', async () => {
    const { status, body } = await send('issues', { pad: 'x'.repeat(1024 * 1024) });
    expect([status, body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });

  test('secrets and markers survive a restart of the whole platform; rotation keeps the former secret', async () => {
    const [payload] = samples('issues');
    const id = randomUUID();
    expect((await send('issues', payload, { id })).body.status).toBe('ok');

    await platform.down();
    url = await platform.up();
    expect((await send('issues', payload, { id })).body).toEqual({ status: 'duplicate' });
    expect((await send('issues', payload)).body.status).toBe('ok');

    const former = secrets.issues!;
    const { secret, rotated } = await provision('issues');
    expect(rotated).toBe(true);
    for (const either of [former, secret])
      expect((await send('issues', payload, { secret: either })).status).toBe(200);
    const { envelope } = await platform.svc('webhooks', 'revoke', 'github', 'issues');
    expect(envelope.ok).toBe(true);
    for (const either of [former, secret])
      expect((await send('issues', payload, { secret: either })).status).toBe(401);
  }, 60_000);

  test("counts are kept over the restart and served by the plugin's REST route through the gateway", async () => {
    const { repository } = samples('push')[0] as { repository: { full_name: string } };
    const credentials = JSON.parse(
      await (await import('node:fs/promises')).readFile(
        join(platform.folder, '.svc/credentials.json'),
        'utf8',
      ),
    );
    const login = await fetch(`${url}/auth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ clientId: credentials.clientId, clientSecret: credentials.clientSecret }),
    });
    const { accessToken } = (await login.json()) as { accessToken: string };
    const path = `/api/v1/plugins/github/repositories/${repository.full_name}`;
    const unauthenticated = await fetch(url + path);
    expect(unauthenticated.status).toBe(401);
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${accessToken}` } });
    expect(response.status).toBe(200);
    expect(JSON.stringify(await response.json())).toMatch(/"push(?:es)?":\s*[1-9]/);
  });

  test('too many in a minute are 429 with Retry-After', async () => {
    const [payload] = samples('push');
    let refused: Sent | undefined;
    for (let i = 0; i < 70 && !refused; i++) {
      const reply = await send('push', payload);
      if (reply.status !== 200) refused = reply;
    }
    expect([refused?.status, refused?.body.error.code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
  }, 30_000);
});
