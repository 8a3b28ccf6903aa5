import { Stripe } from 'stripe';
import type { Vectors } from './vector.ts';

const secret = 'whsec_test_secret';
const body = '{"id":"evt_1","object":"event","type":"payment_intent.succeeded"}';
const at = Date.UTC(2026, 0, 1);

export const vectors: Vectors = async () => [
  {
    provider: 'stripe',
    source: `stripe ${Stripe.PACKAGE_VERSION}, webhooks.generateTestHeaderString`,
    secret,
    at,
    request: {
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'stripe-signature': new Stripe('key_unused').webhooks.generateTestHeaderString({
          payload: body,
          secret,
          timestamp: at / 1000,
        }),
      },
      body,
    },
  },
];
