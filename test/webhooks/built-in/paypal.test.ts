import { execFileSync } from 'node:child_process';
import { sign } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { verifyPayPal } from '../../../src/webhooks/built-in/paypal.ts';
import { tempDir } from '../../support/daemon.ts';
import { signedRequest } from '../../support/signed-request.ts';
import { vectors } from '../vectors/paypal.ts';
import type { Vector } from '../vectors/vector.ts';

const [genuine] = (await vectors({ url: '' })) as [Vector];
const CERTIFICATE = Object.values(genuine.fetches!)[0]!;

interface Change {
  headers?: Record<string, string>;
  certificate?: string;
  nowMs?: number;
}

/** Verifies the genuine delivery with changes, and returns the fetched URLs with the result. */
async function verified({ headers, certificate = CERTIFICATE, nowMs = genuine.at! }: Change = {}) {
  const fetched: string[] = [];
  const request = signedRequest({
    rawHeaders: Object.entries({ ...genuine.request.headers, ...headers }).flat(),
    body: Buffer.from(genuine.request.body as string),
  });
  const fetchText = (url: string) => {
    fetched.push(url);
    return Promise.resolve(certificate);
  };
  return { result: await verifyPayPal(request, genuine.secret, { nowMs, fetchText }), fetched };
}

test('a genuine delivery is accepted', async () => {
  expect((await verified()).result).toBe(true);
});

test.each([
  'http://api.paypal.com/v1/notifications/certs/CERT-1',
  'https://example.com/v1/notifications/certs/CERT-1',
  'https://api.paypal.com.example.com/v1/notifications/certs/CERT-1',
  'https://example.com/api.paypal.com/v1/notifications/certs/CERT-1',
  'https://api.paypal.com@example.com/v1/notifications/certs/CERT-1',
  'https://api.paypal.com:8443/v1/notifications/certs/CERT-1',
  'https://www.paypal.com/v1/notifications/certs/CERT-1',
  'https://api.paypal.com/v1/notifications/certs/../../redirect',
  'https://api.paypal.com/v1/notifications/certs/CERT-1?url=https://example.com',
  'https://api.paypal.com/v1/notifications/certs/CERT-1#',
])('no certificate is fetched from %s', async (url) => {
  expect(await verified({ headers: { 'paypal-cert-url': url } })).toEqual({
    result: 'key_format',
    fetched: [],
  });
});

test("a certificate of the sandbox is no certificate of the live system's host", async () => {
  const url = 'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77';
  expect((await verified({ headers: { 'paypal-cert-url': url } })).result).toBe('key_format');
});

test('a certificate is refused before and after its validity', async () => {
  expect((await verified({ nowMs: Date.UTC(2015, 2, 17) })).result).toBe('key_format');
  expect((await verified({ nowMs: Date.UTC(2017, 2, 23) })).result).toBe('key_format');
});

test.each(['', 'not a certificate', CERTIFICATE.replace('MIIHqD', 'MIIHqE'), CERTIFICATE.repeat(9)])(
  'a malformed certificate file is refused',
  async (certificate) => {
    expect((await verified({ certificate })).result).toBe('key_format');
  },
);

test("a certificate with PayPal's name that no trusted issuer signed is refused", async () => {
  const folder = await tempDir();
  const name = 'messageverificationcerts.sandbox.paypal.com';
  const files = ['-keyout', `${folder}/key.pem`, '-out', `${folder}/cert.pem`];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-days', '2', '-nodes'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', ...files, ...subject], { stdio: 'ignore' });
  const { headers, body } = genuine.request;
  const message = `${headers['paypal-transmission-id']}|${headers['paypal-transmission-time']}|${genuine.secret}|${crc32(body)}`;
  const signature = sign('sha256', Buffer.from(message), await readFile(`${folder}/key.pem`, 'utf8'));
  const change = {
    headers: { 'paypal-transmission-sig': signature.toString('base64') },
    certificate: await readFile(`${folder}/cert.pem`, 'utf8'),
    nowMs: Date.now() + 60_000,
  };
  expect((await verified(change)).result).toBe('key_format');
  expect((await verified({ ...change, certificate: change.certificate + CERTIFICATE })).result).toBe(
    'key_format',
  );
});

test('a signature of another algorithm is refused', async () => {
  const { result } = await verified({ headers: { 'paypal-auth-algo': 'SHA1withRSA' } });
  expect(result).toBe('key_format');
});
