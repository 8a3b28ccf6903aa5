import { expect, test } from 'vitest';
import * as contracts from '../../src/contracts/index.ts';
import { ENDPOINT_ACCESS, type Endpoint, Scope } from '../../src/contracts/index.ts';

const isEndpoint = (value: unknown): value is Endpoint =>
  typeof value === 'object' && value !== null && 'method' in value && 'path' in value && 'reply' in value;

const ENDPOINTS = Object.values(contracts as Record<string, unknown>)
  .filter(isEndpoint)
  .map(({ method, path }) => `${method} ${path}`);

test('every endpoint has an access rule, and every rule has an endpoint', () => {
  expect(ENDPOINTS.length).toBeGreaterThan(80);
  expect(ENDPOINTS.filter((name) => !Object.hasOwn(ENDPOINT_ACCESS, name))).toEqual([]);
  expect(Object.keys(ENDPOINT_ACCESS).filter((name) => !ENDPOINTS.includes(name))).toEqual([]);
});

test('every read that is no secret needs a viewer at most, and every change more', () => {
  const exceptions = ['GET /api/v1/audit/verify', 'GET /api/v1/node'];
  for (const [name, { needs }] of Object.entries(ENDPOINT_ACCESS)) {
    if (['open', 'service', 'caller'].includes(needs) || exceptions.includes(name)) continue;
    if (name.startsWith('GET ')) expect([name, needs]).toEqual([name, 'viewer']);
    else expect([name, needs]).not.toEqual([name, 'viewer']);
  }
});

test('every endpoint for administrators that changes something is recorded in the audit log', () => {
  const missing = Object.entries(ENDPOINT_ACCESS).filter(
    ([name, { needs, audit }]) => needs === 'admin' && audit === undefined && !name.startsWith('GET '),
  );
  expect(missing.map(([name]) => name)).toEqual(['POST /api/v1/marketplace/plans']);
});

test.each([
  ['deliveries:read', true],
  ['messages:send', true],
  ['queue:orders', true],
  ['mcp:github/create-issue', true],
  ['queue:', false],
  ['queue', false],
  ['queue:two words', false],
  ['deliveries:write', false],
  ['mcp:-x', false],
  ['', false],
])('the scope %j is valid: %s', (text, isValid) => {
  expect(Scope.safeParse(text).success).toBe(isValid);
});
