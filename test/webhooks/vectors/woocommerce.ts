import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => [
  {
    provider: 'woocommerce',
    source:
      'https://github.com/woocommerce/woocommerce/blob/trunk/plugins/woocommerce/tests/legacy/unit-tests/webhooks/crud.php (test_generate_signature)',
    // That test signs with an empty secret, which nobody can provision. HMAC pads its key with zero bytes, so this key is
    // the same one.
    secret: '\0'.repeat(8),
    format: 'raw',
    request: {
      headers: {
        'content-type': 'application/json',
        'x-wc-webhook-topic': 'order.created',
        'x-wc-webhook-signature': 'GBDo00G55h6IiV+6CxqivQPLbI//KzaOZm747971tPs=',
      },
      body: 'secret',
    },
  },
];
