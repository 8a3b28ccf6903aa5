import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type DeclaredAuth, verificationOf } from '../../src/webhooks/schemes/index.ts';
import { keysOf, signedRequest, verifyDeclared } from '../support/signed-request.ts';
import { NOW, SECRET, signature } from './support/declared-signature.ts';

describe('hostile requests are refused', () => {
  const list = signature('{timestamp}.{body}', {
    signature: { header: 'x-sig', format: { key: 'v1' } },
    timestamp: { param: 't' },
  });
  const sign = (message: string) => createHmac('sha256', SECRET).update(message).digest('hex');
  const time = String(NOW / 1000);
  const good = sign(`${time}.{}`);
  const verdict = (auth: DeclaredAuth, headers: string[], body = '{}') =>
    verifyDeclared(auth, headers, Buffer.from(body), keysOf(SECRET), NOW);
  const faultOf = (...args: Parameters<typeof verdict>) => {
    const result = verdict(...args);
    return result.valid ? 'valid' : result.fault;
  };

  test('lists of many items, of signatures and of parameters', () => {
    const item = `v1=${good}`;
    expect(faultOf(list, ['x-sig', `t=${time},${Array(16).fill(item).join(',')}`])).toBe('valid');
    expect(faultOf(list, ['x-sig', `t=${time},${Array(17).fill(item).join(',')}`])).toBe('encoding');
    expect(faultOf(list, ['x-sig', `t=${time},${Array(10_000).fill('a=b').join(',')},${item}`])).toBe(
      'encoding',
    );
    expect(faultOf(list, ['x-sig', `t=${time},t=${time},${item}`])).toBe('timestamp_malformed');
    expect(faultOf(list, ['x-sig', `t=${time},__proto__=1,constructor=2,${item}`])).toBe('valid');
  });

  test.each([
    'NaN',
    '-1',
    '1e9',
    'Infinity',
    '9'.repeat(400),
    '١٨٩٣٤٥٦٠٠٠',
    '1893456000\u0000',
    '1_893_456_000',
    '0',
  ])('a signed time %j', (text) => {
    const header = Buffer.from(`t=${text},v1=${sign(`${text}.{}`)}`).toString('utf8');
    expect(faultOf(list, ['x-sig', header])).toBe('timestamp_malformed');
  });

  test.each([
    ['ms', String(NOW), true],
    ['ms', time, false],
    ['s', String(NOW), false],
    ['iso', '2030-01-01T00:00:00.000Z', true],
    ['iso', '2030-01-01T01:00:00+01:00', true],
    ['iso', '2030-01-01T00:00:00', false],
    ['iso', 'Tue, 01 Jan 2030 00:00:00 GMT', false],
    ['iso', '2030-13-01T00:00:00Z', false],
    ['iso', time, false],
  ])('a time in %s written %s: valid is %s', (unit, text, valid) => {
    const auth = signature('{timestamp}.{body}', { timestamp: { header: 'x-time', unit } });
    expect(verdict(auth, ['x-sig', sign(`${text}.{}`), 'x-time', text]).valid).toBe(valid);
  });

  const token = signature('{field:data.token}', { signature: { field: 'data.signature' } });
  test.each([
    ['a repeated key', `{"data":{"token":"a","token":"a","signature":"SIG"}}`, 'field_repeated'],
    [
      'a repeated key in other letters',
      `{"data":{"token":"a","tok\\u0065n":"a","signature":"SIG"}}`,
      'field_repeated',
    ],
    ['a repeated parent', `{"data":{},"data":{"token":"a","signature":"SIG"}}`, 'field_repeated'],
    ['a repeated signature', `{"data":{"token":"a","signature":"x","signature":"SIG"}}`, 'field_repeated'],
    ['an object', `{"data":{"token":{},"signature":"SIG"}}`, 'field_missing'],
    ['a list', `{"data":{"token":["a"],"signature":"SIG"}}`, 'field_repeated'],
    ['a large number', `{"data":{"token":12345678901234567890,"signature":"SIG"}}`, 'field_missing'],
    ['no JSON', `{"data":`, 'field_missing'],
    [
      'the same key elsewhere',
      `{"token":"b","x":{"token":1},"data":{"token":"a","signature":"SIG"}}`,
      'valid',
    ],
  ])('a signed field with %s', (_name, text, fault) => {
    const body = text.replace('SIG', sign('a'));
    const request = signedRequest({
      body: Buffer.from(body),
      fields: () => {
        try {
          return JSON.parse(body) as unknown;
        } catch {
          return undefined;
        }
      },
    });
    const result = verificationOf(token).verify(request, keysOf(SECRET), NOW, undefined as never);
    expect(result).toMatchObject(fault === 'valid' ? { valid: true } : { fault });
  });

  test('names of the prototype are no fields', () => {
    for (const path of ['__proto__', 'constructor.name', '__proto__.toString', 'toString.name', 'length']) {
      const auth = signature(`{field:${path}}`, {});
      expect(faultOf(auth, ['x-sig', sign('Object')])).toBe('field_missing');
    }
  });

  test('signatures that are not written canonically', () => {
    const hex = signature('{body}');
    const signed = sign('{}');
    expect(faultOf(hex, ['x-sig', signed])).toBe('valid');
    for (const other of [
      signed.toUpperCase(),
      ` ${signed}`,
      `${signed}0`,
      signed.slice(1),
      `${signed}\n`,
      '',
    ])
      expect(faultOf(hex, ['x-sig', other])).toBe('encoding');
    const anyCase = signature('{body}', { signature: { header: 'x-sig', encoding: 'hex-any-case' } });
    expect(faultOf(anyCase, ['x-sig', signed.toUpperCase()])).toBe('valid');
    const base64url = signature('{body}', { signature: { header: 'x-sig', encoding: 'base64url' } });
    const bytes = Buffer.from(signed, 'hex');
    expect(faultOf(base64url, ['x-sig', bytes.toString('base64url')])).toBe('valid');
    expect(faultOf(base64url, ['x-sig', bytes.toString('base64')])).toBe('encoding');
    expect(faultOf(hex, ['x-sig', signed, 'X-SIG', signed])).toBe('header_repeated');
  });

  test('a repeated query value and header, and a body that is no form', () => {
    const query = signature('{body}', { signature: { query: 'sig' } });
    const at = (search: string) =>
      verificationOf(query).verify(
        signedRequest({ url: `https://hooks.example.com/h${search}` }),
        keysOf(SECRET),
        NOW,
        undefined as never,
      );
    const signed = sign('{}');
    expect(at(`?sig=${signed}`)).toMatchObject({ valid: true });
    expect(at(`?sig=${signed}&sig=${signed}`)).toMatchObject({ fault: 'query_repeated' });
    expect(at('')).toMatchObject({ fault: 'query_missing' });
    const form = signature('{sortedForm}');
    const type = ['content-type', 'application/x-www-form-urlencoded'];
    expect(faultOf(form, ['x-sig', sign('a1a2b3'), ...type], 'b=3&a=2&a=1&a=2')).toBe('valid');
    expect(faultOf(form, ['x-sig', sign(''), 'content-type', 'application/json'], '{"a":1}')).toBe(
      'body_not_form',
    );
    expect(faultOf(signature('{header:x-a}{body}'), ['x-sig', sign('1{}'), 'x-a', '1', 'x-a', '1'])).toBe(
      'header_repeated',
    );
  });
});
