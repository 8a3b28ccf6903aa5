import { expect, test } from 'vitest';
import { PlatformError, toPlatformError, toRemoteError } from '../../../src/kit/errors/errors.ts';

test('any other error becomes opaque, and keeps its cause for the log', () => {
  const thrown = new TypeError('x of undefined at /home/me/secret.ts');
  const error = toPlatformError(thrown);
  expect([error.code, error.status, error.cause]).toEqual(['INTERNAL_ERROR', 500, thrown]);
  expect(error.message).not.toContain('secret.ts');
});

test('a store failure names its file to the log, not to callers over the network', () => {
  const file = '/srv/app/.svc/svc.db';
  const failure = new PlatformError('STORE_ERROR', `${file} is damaged`, { details: { file } });
  const shown = toRemoteError(failure);
  expect(JSON.stringify([shown.message, shown.details])).not.toContain('svc.db');
  expect([shown.code, shown.cause]).toEqual(['STORE_ERROR', failure]);
});

test('any other PlatformError is sent to the caller unchanged', () => {
  const error = new PlatformError('CONFLICT', 'taken', { details: { by: 'you' } });
  expect(toRemoteError(error)).toBe(error);
});

test.each(['HOST_UNAVAILABLE', 'SERVICE_UNAVAILABLE', 'STORE_ERROR'] as const)(
  '%s has a Retry-After',
  (code) => {
    const told = (headers?: Record<string, string>) =>
      new PlatformError(code, 'away', headers ? { headers } : {}).headers;
    expect([told(), told({ 'Retry-After': '60' })]).toEqual([
      { 'retry-after': '5' },
      { 'retry-after': '60' },
    ]);
  },
);

test('a lasting error has no Retry-After', () => {
  expect(new PlatformError('HOST_NOT_FOUND', 'no such host').headers).toEqual({});
});
