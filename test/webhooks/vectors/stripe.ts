import { Stripe } from 'stripe';
import type { Vectors } from './vector.ts';

const SECRET = 'whsec_a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4';
const OTHER_SECRET = 'whsec_ffffffffffffffffffffffffffffffff';
const AT = Date.UTC(2026, 5, 1);
const BODY = '{"id":"evt_1NG8Du2eZvKYlo2CUI79vXWy","object":"event","type":"payment_intent.succeeded"}';

export const vectors: Vectors = async () => {
  const { webhooks } = new Stripe('sk_test_unused');
  const signed = (secret: string): string =>
    webhooks.generateTestHeaderString({ payload: BODY, secret, timestamp: AT / 1000 });
  const signatureOf = (header: string): string => header.slice(header.indexOf('v1='));
  return [signed(SECRET), `${signed(OTHER_SECRET)},${signatureOf(signed(SECRET))}`].map((header) => {
    webhooks.constructEvent(BODY, header, SECRET, 300, undefined, AT / 1000);
    return {
      provider: 'stripe',
      source: 'stripe@23.1.0',
      secret: SECRET,
      at: AT,
      request: { headers: { 'content-type': 'application/json', 'stripe-signature': header }, body: BODY },
    };
  });
};
