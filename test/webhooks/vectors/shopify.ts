import { createSHA256HMAC } from '@shopify/shopify-api/runtime';
import '@shopify/shopify-api/adapters/node';
import type { Vectors } from './vector.ts';

const SECRET = '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';
const BODY = '{"id":820982911946154508,"email":"jon@example.com","total_price":"409.94"}';

export const vectors: Vectors = async () => [
  {
    provider: 'shopify',
    source: '@shopify/shopify-api@15.0.0',
    secret: SECRET,
    request: {
      headers: {
        'content-type': 'application/json',
        'x-shopify-topic': 'orders/create',
        'x-shopify-shop-domain': 'example.myshopify.com',
        'x-shopify-api-version': '2026-10',
        'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
        'x-shopify-event-id': '98880550-7158-44d4-b7cd-2c97c8a091b5',
        'x-shopify-hmac-sha256': await createSHA256HMAC(SECRET, BODY),
      },
      body: BODY,
    },
  },
];
