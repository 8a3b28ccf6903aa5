import { expect, test } from 'vitest';
import { Permissions } from '../../src/contracts/index.ts';
import { permissionOf } from '../../src/plugins/index.ts';

const PERMISSIONS = Permissions.parse({
  network: ['*.example.com', 'api.test:8080'],
  invoke: ['@acme/orders/list', 'github'],
  platform: { storage: true, llm: false },
});

test('a platform call uses the entry of the manifest that grants it, and nothing if none does', () => {
  const uses = (service: string, arg?: unknown) => permissionOf(PERMISSIONS, service, [arg]);
  expect(uses('fetch', { url: 'https://a.example.com/x' })).toBe('network *.example.com');
  expect(uses('fetch', { url: 'http://api.test:8080/' })).toBe('network api.test:8080');
  expect(uses('fetch', { url: 'http://api.test/' })).toBeUndefined();
  expect(uses('fetch', { url: 'no url' })).toBeUndefined();
  expect(uses('fetch')).toBeUndefined();
  expect(uses('invoke', '@acme/orders/list')).toBe('invoke @acme/orders/list');
  expect(uses('invoke', 'github/issues')).toBe('invoke github');
  expect(uses('invoke', '@acme/orders/delete')).toBeUndefined();
  expect(uses('storage')).toBe('platform.storage');
  expect(uses('llm')).toBeUndefined();
  expect(uses('state')).toBe('platform.state');
  expect(uses('log')).toBeUndefined();
  expect(uses('constructor')).toBeUndefined();
  const denied = Permissions.parse({ platform: { state: false } });
  expect(permissionOf(denied, 'state', [])).toBeUndefined();
});
