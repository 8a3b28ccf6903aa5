import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const asana: Provider = {
  id: 'asana',
  name: 'Asana',
  sources: [
    'https://developers.asana.com/docs/webhooks-guide',
    'https://developers.asana.com/reference/createwebhook',
  ],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'x-hook-signature' })],
  secretFrom: 'sender',
  secretHelp:
    'Asana sends the secret while it creates a webhook: open the window for it, then call POST /webhooks.',
  protects: { body: true, url: false, time: false, sender: true },
  events: ['added', 'changed', 'removed', 'deleted', 'undeleted'],
  handshakes: [
    {
      method: 'POST',
      when: [{ at: { header: 'x-hook-secret' } }],
      isAuthenticated: false,
      effect: { type: 'take-secret', at: { header: 'x-hook-secret' } },
      reply: { status: 200, headers: { 'x-hook-secret': { from: { header: 'x-hook-secret' } } } },
    },
  ],
  accepted: { status: 200, body: '' },
  ackAfterMs: 8000,
  pitfalls: [
    'The request that creates a webhook waits for the answer to the handover, so the gateway must be reachable.',
    'Each webhook has its own secret: use one webhook of this platform for each webhook of Asana.',
    'A delivery has any number of events; a heartbeat every eight hours has none.',
  ],
  sample: {
    headers: { 'content-type': 'application/json; charset=UTF-8' },
    body: '{"events":[{"action":"changed","resource":{"gid":"1337","resource_type":"task"},"parent":null,"created_at":"2013-08-21T18:20:37.972Z","user":{"gid":"1123","resource_type":"user"},"change":{"action":"changed","field":"assignee","new_value":{"gid":"12345","resource_type":"user"}}}]}',
  },
  unverified:
    'The documentation shows no signature together with its secret, and no library of Asana verifies one.',
};
