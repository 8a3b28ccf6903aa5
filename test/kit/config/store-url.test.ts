// biome-ignore-all lint/suspicious/noTemplateCurlyInString: literal config syntax
import { expect, test } from 'vitest';
import { postgresUrlOf, redisUrlOf, storeSecrets } from '../../../src/kit/config/store-url.ts';

const store = (url: string) => ({ url, dataDir: null });

test('SQLite has no PostgreSQL URL', () => {
  expect(postgresUrlOf(store('sqlite:.svc'), {})).toBe(null);
});

test('a variable within the URL is percent-encoded, so that a password may contain any character', () => {
  const url = postgresUrlOf(store('postgres://svc:${DB_PASSWORD}@db:5432/svc'), { DB_PASSWORD: 'a@b/c:%' });
  expect(url).toBe('postgres://svc:a%40b%2Fc%3A%25@db:5432/svc');
  expect(new URL(url!).hostname).toBe('db');
});

test('a variable may contain the whole URL', () => {
  const DATABASE_URL = 'postgresql://svc:word@db/svc';
  expect(postgresUrlOf(store('${DATABASE_URL}'), { DATABASE_URL })).toBe(DATABASE_URL);
});

test('a variable that is not set is named, without the rest of the credentials', () => {
  const error = catchError(() => postgresUrlOf(store('postgres://svc:${DB_PASSWORD}@db/svc'), {}));
  expect(error).toMatchObject({ code: 'CONFIG_NOT_RESOLVED', details: { variable: 'DB_PASSWORD' } });
  expect(String(error)).toContain('Set it in the environment');
});

test.each([
  ['${DATABASE_URL}', { DATABASE_URL: 'mysql://db/svc' }],
  ['postgres://db', {}],
  ['postgres://svc:pass word@db:port/svc', {}],
])('%s is refused if it leads to no database', (url, env) => {
  const error = catchError(() => postgresUrlOf(store(url), env));
  expect(error).toMatchObject({ code: 'VALIDATION_ERROR', details: { key: 'store.url' } });
});

test('the URL of Redis takes its password from a variable, and another protocol is refused', () => {
  const url = redisUrlOf({ url: 'redis://:${CACHE_PASSWORD}@cache:6379/1' }, { CACHE_PASSWORD: 'a@b' });
  expect([url, redisUrlOf({ url: null }, {})]).toEqual(['redis://:a%40b@cache:6379/1', null]);
  expect(catchError(() => redisUrlOf({ url: 'redis://:${NONE}@cache' }, {}))).toMatchObject({
    code: 'CONFIG_NOT_RESOLVED',
    details: { key: 'cache.url', variable: 'NONE' },
  });
  expect(catchError(() => redisUrlOf({ url: '${URL}' }, { URL: 'http://cache' }))).toMatchObject({
    code: 'VALIDATION_ERROR',
    details: { key: 'cache.url' },
  });
});

test('the redactor learns the password in every spelling', () => {
  expect(storeSecrets(store('postgres://svc:p%40ss@db/svc'), {})).toEqual(['p%40ss', 'p@ss']);
  expect(storeSecrets(store('postgres://svc:${WORD}@db/svc'), { WORD: 'a/b' })).toEqual(['a/b', 'a%2Fb']);
  expect(storeSecrets(store('${URL}'), { URL: 'postgres://svc:word@db/svc' })).toContain('word');
});

function catchError(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}
