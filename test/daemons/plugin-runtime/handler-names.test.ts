import { expect, test } from 'vitest';
import { ManifestV3 } from '../../../src/contracts/index.ts';
import { createHandlerNames } from '../../../src/daemons/plugin-runtime/handler-names.ts';

const shared = 'h.js#shared';
const MANIFEST = ManifestV3.parse({
  schema: 'svc.plugin/3',
  id: 'x',
  version: '1.0.0',
  rest: {
    basePath: '/v1/plugins/x',
    routes: [
      { method: 'GET', path: '/items', handler: shared },
      { method: 'GET', path: '/items/:id', handler: shared },
      { method: 'POST', path: '/items', handler: shared },
      { method: 'GET', path: '/own', handler: 'h.js#own' },
    ],
  },
  webhooks: ['opened', 'closed'].map((event) => ({
    event,
    handler: shared,
    auth: { type: 'secret', header: 'x' },
  })),
  commands: ['first', 'second'].map((id) => ({ id, handler: shared })),
});

test.each([
  ['rest', { method: 'GET', path: '/api/v1/plugins/x/items' }, 'GET /items'],
  ['rest', { method: 'GET', path: '/api/v1/plugins/x/items/7' }, 'GET /items/:id'],
  ['rest', { method: 'POST', path: '/api/v1/plugins/x/items' }, 'POST /items'],
  ['webhook', { event: 'opened' }, 'opened'],
  ['webhook', { event: 'closed' }, 'closed'],
  ['cli', { command: 'first' }, 'first'],
  ['cli', { command: 'second' }, 'second'],
] as const)('a handler shared by several calls is named by its call: %s %o', (host, hostContext, name) => {
  expect(createHandlerNames()(MANIFEST, { handler: shared, host, hostContext })).toBe(name);
});

test('a handler of a single call is named by that call, one without a call by its reference', () => {
  const nameOf = createHandlerNames();
  const called = { host: 'rest' as const, hostContext: { method: 'GET', path: '/api/v1/plugins/x/own' } };
  expect(nameOf(MANIFEST, { ...called, handler: 'h.js#own' })).toBe('GET /own');
  expect(nameOf(MANIFEST, { ...called, handler: 'h.js#hook' })).toBe('h.js#hook');
});
