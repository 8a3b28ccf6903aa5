import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTemplate, SignatureAuth, WebhookAuthConfig } from '../../src/contracts/index.ts';
import { verificationOf } from '../../src/webhooks/schemes/index.ts';
import { keysOf, signedRequest } from '../support/signed-request.ts';
import { NOW, SECRET, signature } from './support/declared-signature.ts';

interface Values {
  body: string;
  header: string;
  field: string;
  target: string;
}

/** Fills in a template in the plainest way: one replacement after the other over placeholders that cannot overlap. */
function naive(parts: readonly string[], values: Values): string {
  const [path, ...query] = values.target.split('?');
  const known: Record<string, string> = {
    '{body}': values.body,
    '{timestamp}': String(NOW / 1000),
    '{id}': 'msg_7',
    '{method}': 'POST',
    '{url}': `https://hooks.example.com${values.target}`,
    '{path}': path!,
    '{query}': query.join('?'),
    '{header:X-Extra}': values.header,
    '{field:order.id}': values.field,
    '{{': '{',
    '}}': '}',
  };
  return parts.map((part) => known[part] ?? part).join('');
}

const part = fc.oneof(
  fc.constantFrom('{body}', '{timestamp}', '{id}', '{method}', '{url}', '{path}', '{query}'),
  fc.constantFrom('{header:X-Extra}', '{field:order.id}', '{{', '}}', ':', '.', 'v0:', '\n'),
  fc.string({ maxLength: 5 }).map((text) => text.replace(/[{}]/g, '')),
);
const values = fc.record({
  header: fc.string({ minLength: 1, maxLength: 20 }).map((text) => text.replace(/[^\x21-\x7e]/g, 'x')),
  field: fc.string({ maxLength: 20 }),
  more: fc.dictionary(fc.string(), fc.jsonValue()),
  target: fc.webPath().map((path) => (path.startsWith('/') && path !== '' ? path : `/${path}`)),
  query: fc.option(fc.webQueryParameters(), { nil: undefined }),
});

test('the signed bytes are those of a naive replacement', () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), values, (parts, given) => {
      const template = ['{timestamp}', '{id}', ...parts];
      const body = JSON.stringify({ ...given.more, order: { id: given.field } });
      const target = given.query === undefined ? given.target : `${given.target}?${given.query}`;
      const auth = signature(template.join(''), {
        timestamp: { header: 'x-time' },
        id: { header: 'x-id' },
      });
      const message = naive(template, { body, header: given.header, field: given.field, target });
      const request = signedRequest({
        target,
        body: Buffer.from(body),
        rawHeaders: [
          ...['X-Sig', createHmac('sha256', SECRET).update(message).digest('hex')],
          ...['X-Time', String(NOW / 1000), 'X-Id', 'msg_7', 'X-Extra', given.header],
        ],
      });
      const sent = { ...request, target, url: `https://hooks.example.com${target}` };
      expect(verificationOf(auth).verify(sent, keysOf(SECRET), NOW, undefined as never)).toEqual({
        valid: true,
        secret: 'current',
      });
    }),
    { numRuns: 300 },
  );
});

test('a template is parsed whatever its text, or has a fault', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('{', '}', 'body', ':', 'header', 'x', ' ') }), (text) => {
      const parsed = parseTemplate(text);
      if ('fault' in parsed) return;
      const written = parsed.parts.map((one) =>
        typeof one === 'string'
          ? one.replaceAll('{', '{{').replaceAll('}', '}}')
          : 'of' in one
            ? `{${one.name}:${one.of}}`
            : `{${one.name}}`,
      );
      expect(written.join('')).toBe(text);
    }),
    { examples: [['{header{}'], ['{headerx}'], ['{header:}'], ['{header:x}']] },
  );
});

describe('a declaration that contradicts itself is refused, with its place and a remedy', () => {
  const base = {
    type: 'signature',
    algorithm: 'hmac-sha256',
    signature: { header: 'x-sig' },
    signed: '{body}',
  };
  const list = { header: 'x-sig', format: { key: 'v1' } };
  test.each<[string, object, string, RegExp]>([
    [
      'an unknown placeholder',
      { signed: '{bodi}' },
      'signed',
      /unknown placeholder "\{bodi\}": use \{body\}/,
    ],
    ['an opening brace', { signed: '{body' }, 'signed', /unbalanced "\{" at position 0/],
    ['a closing brace', { signed: '{body}}' }, 'signed', /unbalanced "\}"/],
    ['an empty name', { signed: '{header:}{body}' }, 'signed', /unknown placeholder/],
    ['no placeholder', { signed: 'hello' }, 'signed', /add \{body\}/],
    ['{timestamp} alone', { signed: '{timestamp}.{body}' }, 'signed', /declare "timestamp"/],
    ['{id} alone', { signed: '{id}.{body}' }, 'signed', /declare "id"/],
    ['an id that is not signed', { id: { header: 'x-id' } }, 'signed', /add it, or remove "id"/],
    ['{param:} without a list', { signed: '{param:t}{body}' }, 'signed', /requires a list/],
    [
      'a time of no list',
      { timestamp: { param: 't' }, signed: '{timestamp}{body}' },
      'timestamp.param',
      /list/,
    ],
    ['a time that is not signed', { timestamp: { header: 'x-t' } }, 'signed', /anybody could then change/],
    [
      'a time in the query',
      { timestamp: { query: 't' }, signed: '{path}{body}' },
      'signed',
      /does not cover/,
    ],
    [
      'a time in two places',
      { timestamp: { header: 'a', query: 'b' }, signed: '{timestamp}' },
      'timestamp',
      /exactly one/,
    ],
    ['two places', { signature: { header: 'a', query: 'b' } }, 'signature', /exactly one/],
    ['no place', { signature: {} }, 'signature', /exactly one/],
    ['a public key without format', { algorithm: 'ed25519' }, 'key', /required for ed25519/],
    ['an HMAC with a key', { key: 'pem' }, 'key', /remove it/],
  ])('%s', (_name, change, path, message) => {
    const { error } = SignatureAuth.safeParse({ ...base, ...change });
    const issue = error?.issues.find((one) => one.path.join('.') === path && message.test(one.message));
    expect(issue, JSON.stringify(error?.issues)).toBeDefined();
  });
  test.each<[string, object]>([
    ['a time in a signed body', { timestamp: { field: 'at' } }],
    ['a time in a signed query', { timestamp: { query: 't' }, signed: '{url}' }],
    ['a time that is a signed header', { timestamp: { header: 'X-T' }, signed: '{header:x-t}{body}' }],
    ['a list with a time', { signature: list, timestamp: { param: 't' }, signed: '{timestamp}.{body}' }],
    ['literal braces', { signed: '{{{body}}}' }],
  ])('%s is valid', (_name, change) => {
    expect(SignatureAuth.safeParse({ ...base, ...change }).error?.issues).toBeUndefined();
  });
  test.each([
    [{ algorithms: ['RS256', 'HS256'], jwksUrl: 'https://issuer.example/keys' }, 'algorithms'],
    [{ algorithms: ['RS256'] }, 'jwksUrl'],
    [{ algorithms: ['HS256'], jwksUrl: 'https://issuer.example/keys' }, 'jwksUrl'],
    [{ jwksUrl: 'http://issuer.example/keys' }, 'jwksUrl'],
    [{ jwksUrl: 'https://issuer.example/keys', issuer: 'https://issuer.example' }, 'audience'],
    [{ algorithms: ['none'] }, 'algorithms.0'],
  ])('a token declared as %j', (change, path) => {
    const { error } = WebhookAuthConfig.safeParse({ type: 'jwt', ...change });
    expect(error?.issues.map((issue) => issue.path.join('.'))).toContain(path);
  });
});
