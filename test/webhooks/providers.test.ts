import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type BodyFormat, PROVIDER_IDS } from '../../src/contracts/index.ts';
import { PROVIDERS, type Provider, type ProviderAuth } from '../../src/webhooks/providers/index.ts';
import { TextCache, verificationOf } from '../../src/webhooks/schemes/index.ts';
import { sharedByTests } from '../support/at-end.ts';
import { keysOf, signedRequest } from '../support/signed-request.ts';
import { type Attack, attacksOn } from './support/attacks.ts';
import { CatalogueGateway, eventOf } from './support/catalogue-gateway.ts';
import { otherSecret } from './support/other-secret.ts';
import { send, type WireRequest } from './support/wire-request.ts';
import type { Vector, Vectors } from './vectors/vector.ts';

const VECTORS = new URL('./vectors/', import.meta.url);
const ids = readdirSync(VECTORS)
  .map((file) => file.replace(/\.ts$/, ''))
  .filter((id) => id !== 'vector');
const suites = await Promise.all(
  ids.map(async (id) => {
    const provider = PROVIDERS.find((entry) => entry.id === id);
    if (!provider) throw new Error(`There are vectors of ${id}, which has no entry in the catalogue.`);
    const { vectors } = (await import(new URL(`${id}.ts`, VECTORS).href)) as { vectors: Vectors };
    const example = await vectors({ url: `http://127.0.0.1/webhooks/catalogue/${id}/example` });
    return {
      id,
      provider,
      vectors,
      names: example.map((vector, index) => ({
        source: vector.source,
        format: vector.format,
        index,
        used: usedAuth(provider, vector),
      })),
    };
  }),
);

/** URL of vectors of other URLs than the gateway's. Their deliveries are verified without the gateway. */
const hasFixedUrl = ({ request }: Vector, url: string) => request.url !== undefined && request.url !== url;

const started = sharedByTests(() => CatalogueGateway.start());
afterEach(() => void vi.restoreAllMocks());

describe.each(suites)('$id', ({ provider, vectors, names }) => {
  describe.each(names)('$source', ({ index, used, format }) => {
    /** Vectors are made once, unless they depend on the URL: their keys may be fetched only once. */
    let made: Promise<readonly Vector[]> | undefined;
    const vectorFor = async (url: string): Promise<Vector> => {
      if (provider.protects.url) return (await vectors({ url }))[index]!;
      made ??= vectors({ url });
      return (await made)[index]!;
    };

    test('is accepted', async () => {
      expect(await attempt(provider, vectorFor, format, {})).toBe('accepted');
    });

    test.each(attacksOn(provider, used))('$name: refused is $isRefused', async (attack) => {
      const expected = attack.isRefused ? 'refused' : 'accepted';
      expect(await attempt(provider, vectorFor, format, attack)).toBe(expected);
    });
  });
});

/** Delivers a vector as an attacker changes it. */
async function attempt(
  provider: Provider,
  vectorFor: (url: string) => Promise<Vector>,
  format: BodyFormat | undefined,
  attack: Partial<Attack>,
): Promise<'accepted' | 'refused' | number> {
  const gateway = started();
  const instance = gateway.newInstance();
  const event = eventOf(provider.id, format);
  const url = gateway.urlOf(event, instance);
  const vector = await vectorFor(url);
  answerFetches(vector);
  const used = usedAuth(provider, vector);
  const other = attack.hasOtherSecret ? otherSecret(used, vector.secret) : vector.secret;
  // The keys of the sender's servers prove such a sender; "another proof" covers a forged signature.
  if (other === undefined) return 'refused';
  const atMs = (vector.at ?? Date.now()) + (attack.afterMs ?? 0);
  const wire = wireOf(vector, vector.request.url ?? url, attack.source ?? addressOf(provider));
  const sent = attack.change ? attack.change(wire) : wire;
  if (hasFixedUrl(vector, url)) return verifiedDirectly(provider, sent, other, atMs);
  await gateway.provision(event, instance, other);
  gateway.setTime(atMs);
  const { status } = await send(sent);
  if (status === 401) return 'refused';
  return status < 300 ? 'accepted' : status;
}

function wireOf({ request }: Vector, url: string, source: string): WireRequest {
  return {
    url,
    headers: [
      ...Object.entries(request.headers),
      ['x-svc-namespace', 'default'],
      ['x-forwarded-for', source],
    ],
    body: Buffer.from(request.body as string),
  };
}

async function verifiedDirectly(
  { id }: Provider,
  { url, headers, body }: WireRequest,
  secret: string,
  nowMs: number,
): Promise<'accepted' | 'refused'> {
  const request = signedRequest({ url, rawHeaders: headers.flat(), body });
  const verification = verificationOf({ type: 'provider', provider: id });
  const verdict = await verification.verify(request, keysOf(secret), nowMs, new TextCache());
  return verdict.valid ? 'accepted' : 'refused';
}

function usedAuth({ id, auth }: Provider, { request }: Vector): ProviderAuth {
  const { schemes } = verificationOf({ type: 'provider', provider: id });
  const read = signedRequest({
    rawHeaders: Object.entries(request.headers).flat(),
    body: Buffer.from(request.body as string),
    ...(request.url ? { url: request.url } : {}),
  });
  return auth[
    Math.max(
      0,
      schemes.findIndex((scheme) => scheme.isUsedBy(read)),
    )
  ]!;
}

/** An address that may deliver: the first one of a published range. */
function addressOf({ ipAllow }: Provider): string {
  return ipAllow?.[0]?.split('/')[0] ?? '192.0.2.1';
}

/** Answers requests to the sender's servers, which the tests cannot reach. */
function answerFetches({ fetches = {} }: Vector): void {
  const real = globalThis.fetch;
  vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
    const text = fetches[String(input)];
    return text === undefined ? real(input, init) : Promise.resolve(new Response(text));
  });
}

test('each vector names its source, and a vector of an unverified entry does not exist', () => {
  for (const { provider, names } of suites) {
    expect(names.every(({ source }) => source.length > 3)).toBe(true);
    expect(provider.unverified).toBeUndefined();
  }
});

test('each id has one entry, and at least 50 entries are verified', () => {
  expect(PROVIDERS.map(({ id }) => id).sort()).toEqual([...PROVIDER_IDS].sort());
  const verified = suites.filter(({ provider, names }) => names.length > 0 && !provider.unverified);
  expect(verified.length).toBeGreaterThanOrEqual(50);
});
