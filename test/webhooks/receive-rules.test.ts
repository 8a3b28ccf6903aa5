import { expect, test } from 'vitest';
import { type Handshake, WebhookHandlerDecl } from '../../src/contracts/index.ts';
import { needsNamespaceInUrl } from '../../src/webhooks/namespace-in-url.ts';
import { PROVIDERS, type Provider } from '../../src/webhooks/providers/index.ts';
import { mergedRules, receiveRulesOf } from '../../src/webhooks/receive-rules.ts';

const handshake: Handshake = {
  method: 'HEAD',
  when: [],
  isAuthenticated: false,
  reply: { status: 200, headers: {} },
};
const entry: Provider = {
  ...PROVIDERS[0]!,
  id: 'twilio',
  body: 'form',
  contentTypes: ['application/x-www-form-urlencoded', 'text/plain'],
  jsonField: 'payload',
  deliveryId: { query: 'id' },
  accepted: { status: 200, body: '<Response/>', contentType: 'text/xml' },
  ackAfterMs: 2500,
  handshakes: [handshake],
};
const declared = (more: object = {}) =>
  WebhookHandlerDecl.parse({
    event: 'e',
    handler: 'h.js#h',
    auth: { type: 'provider', provider: 'twilio' },
    ...more,
  });

test('an entry of the catalogue completes a declaration', () => {
  expect(mergedRules(declared(), entry)).toEqual({
    body: { format: 'form', jsonField: 'payload', takesCloudEvents: false },
    hasBodyRules: true,
    contentTypes: entry.contentTypes,
    deliveryId: { query: 'id' },
    reply: 'platform',
    accepted: entry.accepted,
    ackAfterMs: 2500,
    handshakes: [handshake],
    requiresObject: false,
  });
  expect(mergedRules(declared({ async: true }), entry).ackAfterMs).toBeUndefined();
});

test('a declaration takes precedence', () => {
  const own = declared({
    ...{ body: 'json', idempotencyKey: 'header:x-id', ackAfterMs: 100, handshakes: [] },
    accepted: { status: 204 },
  });
  expect(mergedRules(own, entry)).toMatchObject({
    body: { format: 'json' },
    contentTypes: ['application/json', 'application/*+json'],
    deliveryId: 'header:x-id',
    accepted: { status: 204 },
    ackAfterMs: 100,
    handshakes: [],
  });
});

test('webhooks of the former providers, and of no provider, receive as before', () => {
  const before = {
    ...{ hasBodyRules: false, deliveryId: undefined, contentTypes: undefined, accepted: undefined },
    ...{ ackAfterMs: undefined, handshakes: [], body: { format: 'json' } },
  };
  expect(mergedRules(declared(), { ...entry, id: 'github' })).toMatchObject(before);
  expect(mergedRules(declared(), undefined)).toMatchObject(before);
  expect(mergedRules(declared(), { ...entry, id: 'slack' })).toMatchObject(before);
  // Slack shows other answers to forms to its users.
  const form = declared({ body: 'form' });
  expect(mergedRules(form, { ...entry, id: 'slack' }).accepted).toEqual(entry.accepted);
  expect(mergedRules(form, { ...entry, id: 'github' }).accepted).toBeUndefined();
});

test('rules are computed once per declaration', () => {
  const webhook = declared();
  expect(receiveRulesOf(webhook)).toBe(receiveRulesOf(webhook));
});

test('only providers that cannot send headers need the namespace in the URL', () => {
  expect(needsNamespaceInUrl({ type: 'provider', provider: 'github' })).toBe(true);
  expect(needsNamespaceInUrl({ type: 'secret', header: 'x' })).toBe(false);
});
