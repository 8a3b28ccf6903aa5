import { describe, expect, test } from 'vitest';
import {
  BasicAuth,
  Handshake,
  IpAllow,
  JwtAuth,
  MediaType,
  SignatureAuth,
} from '../../src/contracts/index.ts';
import { readDotPath } from '../../src/kit/data/json.ts';
import { PROVIDERS, type ProviderAuth } from '../../src/webhooks/providers/index.ts';

test('the catalogue is in the order of its ids, and each id occurs once', () => {
  const ids = PROVIDERS.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)].sort());
});

describe.each(PROVIDERS)('$id', (provider) => {
  test('declares schemes, handshakes and addresses of the contract', () => {
    for (const auth of provider.auth) expect(declared(auth)).toEqual(auth);
    for (const handshake of provider.handshakes ?? []) expect(Handshake.parse(handshake)).toBeDefined();
    for (const type of provider.contentTypes ?? []) expect(MediaType.parse(type)).toBe(type);
    if (provider.ipAllow) expect(IpAllow.parse(provider.ipAllow)).toHaveLength(provider.ipAllow.length);
  });

  test('has sources, and its sample has the delivery id', () => {
    expect(provider.sources.every((url) => URL.canParse(url))).toBe(true);
    expect(provider.checkedOn).toMatch(/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/);
    const { deliveryId, sample } = provider;
    if (deliveryId?.field === undefined || !/^\s*[[{]/.test(sample.body)) return;
    expect(readDotPath(JSON.parse(sample.body), deliveryId.field)).toEqual(expect.anything());
  });
});

/** Parses a scheme that a plugin could also declare. */
function declared(auth: ProviderAuth): unknown {
  if (auth.type === 'signature') return SignatureAuth.parse(auth);
  if (auth.type === 'jwt') return JwtAuth.parse(auth);
  return auth.type === 'basic' ? BasicAuth.parse(auth) : auth;
}
