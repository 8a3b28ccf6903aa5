import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const meta: Provider = {
  id: 'meta',
  name: 'Meta (Facebook, Instagram, Messenger)',
  sources: [
    'https://developers.facebook.com/docs/graph-api/webhooks/getting-started',
    'https://developers.facebook.com/docs/messenger-platform/webhooks',
  ],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'x-hub-signature-256', prefix: 'sha256=' })],
  secretFrom: 'sender',
  secretHelp: 'Copy the app secret of App settings > Basic.',
  protects: { body: true, url: false, time: false, sender: true },
  eventType: { field: 'object' },
  events: ['page', 'instagram', 'user', 'permissions', 'application', 'ad_account', 'catalog'],
  handshakes: [
    // The verify token is not compared: it would have to be the app secret, which must not be part of a URL. A
    // subscription of another app gains nothing, because its deliveries are not signed with this app's secret.
    {
      method: 'GET',
      when: [{ at: { query: 'hub.mode' }, equals: 'subscribe' }, { at: { query: 'hub.challenge' } }],
      isAuthenticated: false,
      reply: { status: 200, headers: {}, text: { from: { query: 'hub.challenge' } } },
    },
  ],
  ackAfterMs: 4000,
  pitfalls: [
    'Enter any text as verify token; never the app secret.',
    'Apps that are not live receive only test events of the dashboard.',
    'A delivery can contain several entries, in any order, and again after a failure: remove repeated ones in the handler.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'user-agent': 'facebookexternalua' },
    body: '{"object":"page","entry":[{"id":"<PAGE_ID>","time":1458692752478,"messaging":[{"sender":{"id":"<PSID>"},"recipient":{"id":"<PAGE_ID>"}}]}]}',
  },
};
