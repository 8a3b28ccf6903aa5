import { execFileSync } from 'node:child_process';
import { sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WebhookAuthConfig } from '../../src/contracts/index.ts';
import type { DeclaredAuth } from '../../src/webhooks/schemes/index.ts';
import { tempDir } from '../support/daemon.ts';
import { keysOf, verifyDeclared } from '../support/signed-request.ts';

const NOW = Date.UTC(2030, 0, 1);

const declared = (algorithm: string, encoding: string, more: object = {}): DeclaredAuth =>
  WebhookAuthConfig.parse({
    ...{ type: 'signature', algorithm, signature: { header: 'x-sig', encoding } },
    ...more,
  }) as DeclaredAuth;

const verdict = (auth: DeclaredAuth, signature: string, body: string | Buffer, secret: string) =>
  verifyDeclared(auth, ['x-sig', signature], Buffer.from(body as string), keysOf(secret), NOW);

/** RFC 4231, test case 2; RFC 2202, test case 2 of HMAC-SHA-1. */
test.each([
  ['hmac-sha1', 'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79'],
  ['hmac-sha256', '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'],
  [
    'hmac-sha384',
    'af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649',
  ],
  [
    'hmac-sha512',
    '164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737',
  ],
])('%s of the RFC', (algorithm, digest) => {
  const body = 'what do ya want for nothing?';
  expect(verdict(declared(algorithm, 'hex'), digest, body, 'Jefe')).toMatchObject({ valid: true });
  expect(verdict(declared(algorithm, 'hex'), digest, `${body}?`, 'Jefe')).toMatchObject({
    fault: 'mismatch',
  });
  expect(verdict(declared(algorithm, 'hex'), digest.slice(2), body, 'Jefe')).toMatchObject({
    fault: 'encoding',
  });
  const hexKey = declared(algorithm, 'hex', { secret: { encoding: 'hex', prefix: 'key_' } });
  expect(verdict(hexKey, digest, body, 'key_4a656665')).toMatchObject({ valid: true });
  const base64Key = declared(algorithm, 'hex', { secret: { encoding: 'base64' } });
  expect(verdict(base64Key, digest, body, 'SmVmZQ==')).toMatchObject({ valid: true });
});

/** RFC 8032, section 7.1, test 3. */
test('ed25519 of the RFC, with its key in each format', () => {
  const hex = 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025';
  const signature =
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a';
  const raw = Buffer.from(hex, 'hex');
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), raw]).toString('base64');
  const formats = {
    'raw-hex': hex,
    'raw-base64': raw.toString('base64'),
    'spki-base64': spki,
    pem: `-----BEGIN PUBLIC KEY-----\n${spki}\n-----END PUBLIC KEY-----\n`,
  };
  for (const [key, text] of Object.entries(formats)) {
    const auth = declared('ed25519', 'hex', { key });
    expect(verdict(auth, signature, Buffer.from('af82', 'hex'), text)).toMatchObject({ valid: true });
    expect(verdict(auth, signature, Buffer.from('af83', 'hex'), text)).toMatchObject({ fault: 'mismatch' });
    expect(verdict(auth, signature, Buffer.from('af82', 'hex'), 'no key')).toMatchObject({
      fault: 'mismatch',
    });
  }
});

const KEYS = {
  'ecdsa-p256-sha256': ['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'rsa-sha1': ['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
  'rsa-sha256': ['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
};

test.each(Object.entries(KEYS))('%s as openssl signs it', async (algorithm, args) => {
  const folder = await tempDir();
  const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  openssl(...args, '-out', 'private.pem');
  const pem = openssl('pkey', '-in', 'private.pem', '-pubout').toString();
  writeFileSync(join(folder, 'body'), '{"a":1}');
  const hash = algorithm === 'rsa-sha1' ? '-sha1' : '-sha256';
  const signature = openssl('dgst', hash, '-sign', 'private.pem', 'body');

  const auth = declared(algorithm, 'base64', { key: 'pem' });
  const text = signature.toString('base64');
  expect(verdict(auth, text, '{"a":1}', pem)).toMatchObject({ valid: true });
  expect(verdict(auth, text, '{"a":2}', pem)).toMatchObject({ fault: 'mismatch' });
  const der = openssl('pkey', '-in', 'private.pem', '-pubout', '-outform', 'DER').toString('base64');
  const spki = declared(algorithm, 'base64', { key: 'spki-base64' });
  expect(verdict(spki, text, '{"a":1}', der)).toMatchObject({ valid: true });

  openssl(...args, '-out', 'other.pem');
  const other = openssl('pkey', '-in', 'other.pem', '-pubout').toString();
  expect(verdict(auth, text, '{"a":1}', other)).toMatchObject({ fault: 'mismatch' });
  // A key of another algorithm, and a private key, are no keys of the scheme.
  const ed25519 = openssl('genpkey', '-algorithm', 'ED25519').toString();
  expect(verdict(auth, text, '{"a":1}', ed25519)).toMatchObject({ fault: 'mismatch' });
});

test('an ECDSA signature may have the form of IEEE P1363', async () => {
  const folder = await tempDir();
  const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  openssl(...KEYS['ecdsa-p256-sha256'], '-out', 'private.pem');
  const key = openssl('pkey', '-in', 'private.pem').toString();
  const pem = openssl('pkey', '-in', 'private.pem', '-pubout').toString();
  const auth = declared('ecdsa-p256-sha256', 'base64', { key: 'pem' });
  const signature = sign('sha256', Buffer.from('{}'), { key, dsaEncoding: 'ieee-p1363' }).toString('base64');
  expect(verdict(auth, signature, '{}', pem)).toMatchObject({ valid: true });
  expect(verdict(auth, signature, '[]', pem)).toMatchObject({ fault: 'mismatch' });
});

test('of sixteen signatures, each position counts, and the previous key is accepted', () => {
  const auth = declared('hmac-sha256', 'hex', {
    signature: { header: 'x-sig', format: { separator: ' ', assign: ',', key: 'v1' } },
  });
  const good = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
  const bad = good.replace('5', '6');
  for (let at = 0; at < 16; at++) {
    const items = Array.from({ length: 16 }, (_, index) => `v1,${index === at ? good : bad}`);
    const body = 'what do ya want for nothing?';
    expect(verdict(auth, items.join(' '), body, 'Jefe')).toEqual({ valid: true, secret: 'current' });
    expect(
      verifyDeclared(auth, ['x-sig', items.join(' ')], Buffer.from(body), keysOf('new', 'Jefe'), NOW),
    ).toEqual({ valid: true, secret: 'previous' });
  }
});

test('of the signatures in alternative places one must match, and all must be well-formed', () => {
  const auth = declared('hmac-sha256', 'hex', {
    signature: { header: 'x-sig', alternatives: [{ header: 'x-sig-2' }, { header: 'x-sig-3' }] },
  });
  const good = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
  const bad = good.replace('5', '6');
  const check = (...headers: string[]) =>
    verifyDeclared(auth, headers, Buffer.from('what do ya want for nothing?'), keysOf('Jefe'), NOW);
  expect(check('x-sig', good, 'x-sig-2', bad)).toMatchObject({ valid: true });
  expect(check('x-sig', bad, 'x-sig-2', good)).toMatchObject({ valid: true });
  expect(check('x-sig-3', good)).toMatchObject({ valid: true });
  expect(check('x-sig', bad, 'x-sig-2', bad)).toMatchObject({ fault: 'mismatch' });
  expect(check('x-sig', good, 'x-sig-2', good.slice(2))).toMatchObject({ fault: 'encoding' });
  expect(check('x-sig', good, 'x-sig-3', bad, 'x-sig-3', bad)).toMatchObject({ fault: 'header_repeated' });
  expect(check()).toMatchObject({ fault: 'header_missing' });
});

test.each([
  ['nine places', { alternatives: Array(9).fill({ header: 'x-sig-2' }) }],
  ['no place', { alternatives: [] }],
  ['a place with two names', { alternatives: [{ header: 'x-sig-2', query: 'sig' }] }],
  ['a list of signatures', { alternatives: [{ header: 'x-sig-2' }], format: { key: 'v1' } }],
])('alternatives with %s are no declaration', (_name, signature) => {
  expect(() => declared('hmac-sha256', 'hex', { signature: { header: 'x-sig', ...signature } })).toThrow();
});
