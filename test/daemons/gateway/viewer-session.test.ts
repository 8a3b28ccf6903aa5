import { expect, test } from 'vitest';
import {
  ENDPOINT_ACCESS,
  grantRole,
  registerHost,
  startStudioSession,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { MEMBER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream } from './support/echo-upstream.ts';

/** What each caller may do with its own session, whatever its role. */
const OWN_SESSION = ['POST /api/v1/studio/links', 'DELETE /studio/session'];
/** Each tool of the MCP endpoint has its own rule. */
const TOOLS = 'POST /mcp';
const UNSAFE = Object.entries(ENDPOINT_ACCESS)
  .filter(([name, { needs }]) => !name.startsWith('GET ') && needs !== 'open' && needs !== 'service')
  .map(([name]) => name);

/** This route reads its body before it reads the caller. */
const HOST = { name: 'x', publicKey: Buffer.alloc(32, 1).toString('base64') };

type Headers = Record<string, string>;

/** Headers of the calls of a page whose session began with a token. */
async function sessionOf(gateway: TestGateway, token: string): Promise<Headers> {
  const response = await fetch(gateway.url + startStudioSession.path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  const cookie = response.headers.getSetCookie()[0]!.split(';')[0]!;
  return { cookie, 'x-svc-csrf': ((await response.json()) as AnyJson).csrfToken };
}

async function send(gateway: TestGateway, name: string, headers: Headers) {
  const [method, path] = name.split(' ') as [string, string];
  const hasBody = method !== 'DELETE';
  const response = await fetch(gateway.url + path.replace(/:\w+/g, 'x'), {
    method,
    headers: { ...headers, ...(hasBody ? { 'content-type': 'application/json' } : {}) },
    ...(hasBody ? { body: JSON.stringify(path === registerHost.path ? HOST : {}) } : {}),
  });
  return { status: response.status, error: ((await response.json()) as AnyJson).error };
}

test.each(['the session', 'the token'] as const)(
  'a viewer is refused every endpoint that changes something, called with %s',
  async (kind) => {
    const upstream = await startUpstream();
    const gateway = await startGateway({
      peers: createPeers({ rest: upstream.url, workflow: upstream.url }),
    });
    await gateway.call(grantRole, {
      body: { subject: 'host:member', role: 'viewer', namespaceId: 'default' } as never,
    });
    const headers =
      kind === 'the session'
        ? await sessionOf(gateway, MEMBER_TOKEN)
        : { authorization: `Bearer ${MEMBER_TOKEN}` };
    const calls = upstream.seen.length;
    const refused = UNSAFE.filter((name) => !OWN_SESSION.includes(name) && name !== TOOLS);
    expect(refused.length).toBeGreaterThan(35);
    for (const name of [...refused, 'POST /api/v1/plugins/shop/orders', 'PATCH /api/v1/unknown']) {
      const { status, error } = await send(gateway, name, headers);
      expect([name, status, error]).toMatchObject([name, 403, { code: 'FORBIDDEN' }]);
    }
    expect(upstream.seen).toHaveLength(calls);
    for (const name of ['GET /api/v1/workflows/runs', 'GET /api/v1/webhooks/deliveries']) {
      const [method, path] = name.split(' ') as [string, string];
      expect([name, (await fetch(gateway.url + path, { method, headers })).status]).toEqual([name, 200]);
    }
  },
);

test('the endpoints that any session may call exist', () => {
  expect(OWN_SESSION.filter((name) => !UNSAFE.includes(name))).toEqual([]);
});
