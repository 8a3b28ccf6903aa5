import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const woocommerce: Provider = {
  id: 'woocommerce',
  name: 'WooCommerce',
  sources: [
    'https://woocommerce.github.io/woocommerce-rest-api-docs/#webhooks',
    'https://github.com/woocommerce/woocommerce/blob/trunk/plugins/woocommerce/includes/class-wc-webhook.php',
  ],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'x-wc-webhook-signature', encoding: 'base64' })],
  secretFrom: 'either',
  secretHelp: 'Enter the secret under WooCommerce > Settings > Advanced > Webhooks > Secret.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { header: 'x-wc-webhook-delivery-id' },
  eventType: { header: 'x-wc-webhook-topic' },
  events: [
    'order.created',
    'order.updated',
    'order.deleted',
    'order.restored',
    'product.created',
    'product.updated',
    'product.deleted',
    'product.restored',
    'customer.created',
    'customer.updated',
    'customer.deleted',
    'coupon.created',
    'coupon.updated',
    'coupon.deleted',
    'coupon.restored',
  ],
  // WooCommerce posts the unsigned form `webhook_id=<n>` when the webhook is saved, and expects 200. Deliveries are JSON.
  handshakes: ['application/x-www-form-urlencoded', 'application/x-www-form-urlencoded; charset=UTF-8'].map(
    (type) => ({
      method: 'POST',
      when: [{ at: { header: 'content-type' }, equals: type }],
      isAuthenticated: false,
      reply: { status: 200, headers: {}, text: '' },
    }),
  ),
  pitfalls: [
    'WooCommerce decodes HTML entities in the secret before it signs, so use letters and digits only.',
    'WooCommerce disables a webhook after five failed deliveries in a row, and does not repeat failed ones.',
    'Redirects break deliveries: enter the exact URL, with https.',
  ],
  sample: {
    headers: {
      'content-type': 'application/json',
      'user-agent': 'WooCommerce/9.4.0 Hookshot (WordPress/6.7)',
      'x-wc-webhook-topic': 'order.created',
      'x-wc-webhook-resource': 'order',
      'x-wc-webhook-event': 'created',
      'x-wc-webhook-delivery-id': 'd5c3a1c35fa5d4f6ba1b0c2a3f9d5f0a',
    },
    body: '{"id":727,"status":"processing","currency":"USD","total":"29.35"}',
  },
};
