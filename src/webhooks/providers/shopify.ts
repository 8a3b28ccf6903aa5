import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const shopify: Provider = {
  id: 'shopify',
  name: 'Shopify',
  sources: ['https://shopify.dev/docs/apps/build/webhooks/subscribe/https'],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'x-shopify-hmac-sha256', encoding: 'base64' })],
  secretFrom: 'sender',
  secretHelp:
    'Copy the client secret of the app. For webhooks of the shop admin, copy the secret under Settings > Notifications > Webhooks.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { header: 'x-shopify-webhook-id' },
  eventType: { header: 'x-shopify-topic' },
  events: ['orders/create', 'orders/paid', 'products/update', 'customers/create', 'app/uninstalled'],
  pitfalls: [
    'The key is the client secret of the app, not its access token.',
    'After a rotation of the client secret, Shopify may sign with the old one for an hour.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'x-shopify-topic': 'orders/create' },
    body: '{"id":820982911946154508,"email":"jon@example.com"}',
  },
};
