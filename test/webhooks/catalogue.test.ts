import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Handshake, IpAllow, JwtAuth, SignatureAuth } from '../../src/contracts/index.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { PROVIDERS } from '../../src/webhooks/providers/index.ts';
import { providersPage } from '../../src/webhooks/providers/providers-page.ts';
import { computedProtection } from '../../src/webhooks/schemes/index.ts';

describe.each(PROVIDERS.map((provider) => ({ id: provider.id, provider })))('$id', ({ provider }) => {
  test('declares what its schemes protect', () => {
    const computed = computedProtection(provider.auth);
    if (computed) expect(provider.protects).toEqual(computed);
  });

  test('is valid data', () => {
    for (const auth of provider.auth) {
      if (auth.type === 'signature') expect(SignatureAuth.parse(auth)).toEqual(auth);
      if (auth.type === 'jwt') expect(JwtAuth.parse(auth)).toEqual(auth);
    }
    for (const handshake of provider.handshakes ?? []) Handshake.parse(handshake);
    if (provider.ipAllow) IpAllow.parse(provider.ipAllow);
    expect(provider.secretFrom === 'url').toBe(
      provider.auth[0].type === 'token' && provider.auth[0].at.query !== undefined,
    );
    expect(provider.sources.every((url) => /^https?:\/\//.test(url))).toBe(true);
  });
});

test('the entries are in the order of their ids, each once', () => {
  const ids = PROVIDERS.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)].sort());
});

test('docs/providers.md lists the catalogue; remake it with `node scripts/write-providers-page.ts`', async () => {
  expect(await readFile(join(packageRoot, 'docs/providers.md'), 'utf8')).toBe(providersPage());
});
