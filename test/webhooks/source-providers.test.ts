import { createHmac } from 'node:crypto';
import { existsSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  type BodyFormat,
  createSource,
  listSources,
  type SourceName,
  updateSource,
} from '../../src/contracts/index.ts';
import { PROVIDERS, type Provider } from '../../src/webhooks/providers/index.ts';
import { sharedByTests } from '../support/at-end.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from './support/wire-request.ts';
import type { Vector, Vectors } from './vectors/vector.ts';

const started = sharedByTests(() =>
  startGateway({ config: { gateway: { trustedProxies: ['127.0.0.1', '::1'] } } }),
);
const real = globalThis.fetch;
afterEach(() => void vi.restoreAllMocks());

interface Declared {
  secret?: string | undefined;
  body?: BodyFormat | undefined;
}

async function create(gateway: TestGateway, name: string, { id }: Provider, declared: Declared = {}) {
  // Changes are limited per minute.
  gateway.clock.advance(1000);
  const body = { name: name as SourceName, provider: id, ...declared };
  const made = await gateway.call(createSource, { body });
  return { ...made, url: made.url.replace('localhost', '127.0.0.1') };
}

async function vectorsOf({ id, secretFrom }: Provider): Promise<readonly Vector[]> {
  const file = new URL(`./vectors/${id}.ts`, import.meta.url);
  if (!existsSync(file)) return [];
  const { vectors } = (await import(file.href)) as { vectors: Vectors };
  const made = await vectors({ url: `http://127.0.0.1/in/default/${id}` });
  // The URL of a source has its own token, and a signed URL would have to be the one of this gateway.
  return made.filter(({ request }) => request.url === undefined || secretFrom === 'url');
}

/** Answers requests to the sender's servers, which the tests cannot reach. */
function answerFetches({ fetches = {} }: Vector): void {
  vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
    const text = fetches[String(input)];
    return text === undefined ? real(input, init) : Promise.resolve(new Response(text));
  });
}

async function deliver(gateway: TestGateway, url: string, provider: Provider, vector: Vector) {
  answerFetches(vector);
  gateway.clock.jump(vector.at ?? Date.now());
  // An address that may deliver: the first one of a published range.
  const address = provider.ipAllow?.[0]?.split('/')[0] ?? '192.0.2.1';
  const { headers, body } = vector.request;
  const sent = [...Object.entries(headers), ['x-forwarded-for', address] as const];
  return send({ url, headers: sent, body: Buffer.from(body as string) });
}

describe.each(PROVIDERS.map((provider) => ({ id: provider.id, provider })))('$id', ({ id, provider }) => {
  const hasToken = provider.secretFrom === 'url';
  const isGenerated = !hasToken && provider.secretFrom !== 'sender';

  test('a source can be created, and its token is shown once', async () => {
    const gateway = started();
    const { url, secret } = await create(gateway, `${id}-new`, provider);
    expect(new URL(url).pathname).toMatch(
      hasToken ? new RegExp(`^/in/default/${id}-new/[\\w-]{43}$`) : `/in/default/${id}-new`,
    );
    expect(secret !== '').toBe(isGenerated);
    const { items } = await gateway.call(listSources, { query: { limit: 500 } });
    const listed = items.find(({ name }) => name === `${id}-new`)!;
    expect(listed).toMatchObject({ provider: id, provisioned: hasToken || isGenerated });
    expect(listed.url.endsWith('/…')).toBe(hasToken);
  });

  test.skipIf(provider.protects.url || provider.unverified !== undefined)(
    'the deliveries of its library or documentation are accepted',
    async () => {
      const gateway = started();
      const vectors = await vectorsOf(provider);
      expect(vectors).not.toEqual([]);
      for (const [index, vector] of vectors.entries()) {
        const secret = hasToken ? undefined : vector.secret;
        const { url } = await create(gateway, `${id}-${index}`, provider, {
          secret,
          body: vector.format,
        });
        const { status, text } = await deliver(gateway, url, provider, vector);
        expect(status < 300, `${vector.source}: ${status} ${text}`).toBe(true);
      }
    },
  );
});

test('the forms of Slack get 400 unless the source declares the body as a form', async () => {
  const gateway = started();
  const secret = 'the-signing-secret-of-slack';
  const slack = PROVIDERS.find(({ id }) => id === 'slack')!;
  const { url } = await create(gateway, 'slack-forms', slack, { secret });
  const press = () => {
    const time = String(Math.floor(gateway.clock.now() / 1000));
    const body = `payload=${encodeURIComponent('{"type":"block_actions"}')}`;
    const signature = createHmac('sha256', secret).update(`v0:${time}:${body}`).digest('hex');
    const headers = [
      ['content-type', 'application/x-www-form-urlencoded'],
      ['x-slack-request-timestamp', time],
      ['x-slack-signature', `v0=${signature}`],
    ] as const;
    return send({ url, headers, body: Buffer.from(body) });
  };
  expect((await press()).status).toBe(400);
  const params = { name: 'slack-forms' as SourceName };
  await gateway.call(updateSource, { params, body: { body: 'form' } });
  expect((await press()).status).toBe(200);
});
