import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createPathMatcher } from '../../../src/daemons/plugin-routes/path-matcher.ts';

function matcherOf(...routes: Array<[string, string]>) {
  const matcher = createPathMatcher<string>();
  for (const [method, path] of routes) expect(matcher.add(method, path, `${method} ${path}`)).toBe(true);
  return (method: string, path: string) => {
    const match = matcher.find(method, path);
    return match.found ? [match.target, match.params] : match.allowed;
  };
}

test('literal segments win over parameters, and a dead end falls back to the parameter', () => {
  const find = matcherOf(['GET', '/a/:x'], ['GET', '/a/new'], ['GET', '/a/new/z'], ['GET', '/a/:x/:y']);
  expect(find('GET', '/a/new')).toEqual(['GET /a/new', {}]);
  expect(find('GET', '/a/old')).toEqual(['GET /a/:x', { x: 'old' }]);
  expect(find('GET', '/a/new/q')).toEqual(['GET /a/:x/:y', { x: 'new', y: 'q' }]);
});

test('another method at the path is reported, also where literals and parameters differ', () => {
  const find = matcherOf(['GET', '/a/:x'], ['POST', '/a/new'], ['PUT', '/b']);
  expect(find('GET', '/a/new')).toEqual(['GET /a/:x', { x: 'new' }]);
  expect(find('DELETE', '/a/new')).toEqual(['GET', 'POST']);
  expect(find('DELETE', '/c')).toEqual([]);
});

test('segments are decoded one by one; malformed escapes and empty parameters match nothing', () => {
  const find = matcherOf(['GET', '/p/%40a%2Fb/:x']);
  expect(find('GET', '/p/@a%2fb/%2e%2e%2F')).toEqual(['GET /p/%40a%2Fb/:x', { x: '../' }]);
  expect(find('GET', '/p/@a/b/x')).toEqual([]);
  expect(find('GET', '/p/@a%2fb/%zz')).toEqual([]);
  expect(find('GET', '/p/@a%2fb/')).toEqual([]);
  expect(find('GET', '/p/@a%2fb/x/')).toEqual([]);
});

test('a second pattern for the same requests is refused', () => {
  const matcher = createPathMatcher<number>();
  expect([
    matcher.add('GET', '/a/:x', 1),
    matcher.add('GET', '/a/:y', 2),
    matcher.add('POST', '/a/:y', 3),
  ]).toEqual([true, false, true]);
  expect(matcher.find('GET', '/a/7')).toMatchObject({ target: 1, params: { x: '7' } });
});

test('any segment encoded into a parameter is decoded unchanged', () => {
  const find = matcherOf(['GET', '/a/:x/b/:y']);
  const segment = fc.string({ minLength: 1, unit: 'grapheme' });
  fc.assert(
    fc.property(segment, segment, (x, y) => {
      expect(find('GET', `/a/${encodeURIComponent(x)}/b/${encodeURIComponent(y)}`)).toEqual([
        'GET /a/:x/b/:y',
        { x, y },
      ]);
    }),
  );
});
