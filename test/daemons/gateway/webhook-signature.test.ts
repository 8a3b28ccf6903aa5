import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WebhookAuthConfig } from '../../../src/contracts/index.ts';
import type { DeclaredWebhook } from '../../../src/daemons/gateway/domain/webhooks/receive/targets.ts';
import { createWebhookVerifier } from '../../../src/daemons/gateway/domain/webhooks/verify/verifier.ts';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { keysOf, verifyDeclared } from '../../support/signed-request.ts';

type SharedAuth = Extract<Parameters<typeof verifyDeclared>[0], { header: string }>;

const github = WebhookAuthConfig.parse({
  type: 'hmac',
  header: 'X-Hub-Signature-256',
  prefix: 'sha256=',
}) as SharedAuth;
const base64 = WebhookAuthConfig.parse({ type: 'hmac', header: 'x-sig', encoding: 'base64' }) as SharedAuth;
const plain = WebhookAuthConfig.parse({ type: 'secret', header: 'x-token' }) as SharedAuth;

const NOW = Date.UTC(2030, 0, 1);
const hmac = (secret: string, body: Buffer | string, encoding: 'hex' | 'base64' = 'hex'): string =>
  createHmac('sha256', secret).update(body).digest(encoding);

test('an HMAC over the exact bytes is valid, whatever the bytes and the secret', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.string({ minLength: 1 }), (bytes, secret) => {
      const body = Buffer.from(bytes);
      const hex = ['x-hub-signature-256', `sha256=${hmac(secret, body)}`];
      expect(verifyDeclared(github, hex, body, keysOf(secret), NOW)).toEqual({
        valid: true,
        secret: 'current',
      });
      const b64 = ['X-Sig', hmac(secret, body, 'base64')];
      expect(verifyDeclared(base64, b64, body, keysOf(secret), NOW)).toEqual({
        valid: true,
        secret: 'current',
      });
    }),
  );
});

test('one changed byte of the body or of the signature is refused', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 100 }),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (bytes, at, by) => {
        const body = Buffer.from(bytes);
        const header = ['x-hub-signature-256', `sha256=${hmac('s', body)}`];
        const tampered = Buffer.from(body);
        tampered[at % body.length] = tampered[at % body.length]! ^ by;
        expect(verifyDeclared(github, header, tampered, keysOf('s'), NOW)).toEqual({
          valid: false,
          fault: 'mismatch',
        });
      },
    ),
  );
});

test('no random header value passes the check or crashes it', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((text) => `sha256=${text}`),
      ),
      (value) => {
        for (const auth of [github, base64, plain]) {
          const verdict = verifyDeclared(
            auth,
            [auth.header, value],
            Buffer.from('body'),
            keysOf('a-secret-nobody-guesses'),
            NOW,
          );
          expect(verdict.valid).toBe(false);
        }
      },
    ),
  );
});

const body = Buffer.from('{"a":1}');
const good = hmac('now', body);

test.each<[string, string[], string]>([
  ['no header', [], 'header_missing'],
  [
    'the header twice',
    ['x-hub-signature-256', `sha256=${good}`, 'X-Hub-Signature-256', `sha256=${good}`],
    'header_repeated',
  ],
  ['no prefix', ['x-hub-signature-256', good], 'prefix_missing'],
  ['another prefix', ['x-hub-signature-256', `sha1=${good}`], 'prefix_missing'],
  ['upper-case hex', ['x-hub-signature-256', `sha256=${good.toUpperCase()}`], 'encoding'],
  ['too short', ['x-hub-signature-256', `sha256=${good.slice(2)}`], 'encoding'],
  ['trailing text', ['x-hub-signature-256', `sha256=${good}zz`], 'encoding'],
  ['another secret', ['x-hub-signature-256', `sha256=${hmac('other', body)}`], 'mismatch'],
])('%s is refused', (_name, rawHeaders, fault) => {
  expect(verifyDeclared(github, rawHeaders, body, keysOf('now'), NOW)).toEqual({ valid: false, fault });
});

test('a header whose value is the word "repeated" is an ordinary value', () => {
  expect(verifyDeclared(plain, ['x-token', 'repeated'], body, keysOf('repeated'), NOW)).toEqual({
    valid: true,
    secret: 'current',
  });
});

test('base64 must be canonical', () => {
  const signature = hmac('now', body, 'base64');
  for (const other of [
    signature.replace(/=+$/, ''),
    `${signature}=`,
    signature.replaceAll('+', '-').replaceAll('/', '_').replace(/=$/, ''),
    ` ${signature}`,
  ]) {
    expect(verifyDeclared(base64, ['x-sig', other], body, keysOf('now'), NOW).valid).toBe(false);
  }
});

test('the previous secret is accepted until it expires, and none is accepted without any secret', () => {
  const header = ['x-hub-signature-256', `sha256=${hmac('before', body)}`];
  expect(verifyDeclared(github, header, body, keysOf('now', 'before'), NOW)).toEqual({
    valid: true,
    secret: 'previous',
  });
  expect(verifyDeclared(github, header, body, keysOf('now'), NOW)).toEqual({
    valid: false,
    fault: 'mismatch',
  });
  expect(verifyDeclared(github, header, body, undefined, NOW)).toEqual({
    valid: false,
    fault: 'unprovisioned',
  });
  const nobody = ['x-hub-signature-256', `sha256=${hmac('nobody', body)}`];
  expect(verifyDeclared(github, nobody, body, undefined, NOW).valid).toBe(false);
  expect(verifyDeclared(github, nobody, body, keysOf('now'), NOW).valid).toBe(false);
});

test.each(['SERVICE_UNAVAILABLE', 'HOST_UNAVAILABLE'] as const)(
  'a validator that could not run (%s) makes the delivery unavailable, not unauthentic',
  async (code) => {
    const unavailable = new PlatformError(code, 'no room');
    const { verify } = createWebhookVerifier({
      runValidator: () => Promise.reject(unavailable),
      publicUrl: null,
      clock: systemClock,
      logger: silentLogger,
    });
    const target = {
      plugin: { id: 'p' },
      webhook: { event: 'e', auth: { type: 'custom', validator: 'h.js#v' } },
    } as unknown as DeclaredWebhook;
    const incoming = {
      method: 'POST',
      requestId: 'r',
      traceId: 't',
      source: '::1',
      url: '/',
      rawHeaders: [],
    };
    const context = { webhookId: 'w', namespaceId: 'n', instanceId: '', incoming, fields: () => undefined };
    await expect(verify(target, body, keysOf('now'), context)).rejects.toBe(unavailable);
  },
);
