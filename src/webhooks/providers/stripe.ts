import type { Provider } from './provider.ts';

export const stripe: Provider = {
  id: 'stripe',
  name: 'Stripe',
  sources: [
    'https://docs.stripe.com/webhooks/signature',
    'https://github.com/stripe/stripe-node/blob/master/src/Webhooks.ts',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: {
        header: 'stripe-signature',
        prefix: '',
        encoding: 'hex',
        format: { separator: ',', assign: '=', key: 'v1' },
      },
      signed: '{timestamp}.{body}',
      timestamp: { param: 't', unit: 's', toleranceSeconds: 300 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the signing secret (whsec_…) of the endpoint in the Workbench under Webhooks.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { field: 'id' },
  eventType: { field: 'type' },
  events: [
    'checkout.session.completed',
    'customer.subscription.updated',
    'invoice.paid',
    'invoice.payment_failed',
    'payment_intent.succeeded',
  ],
  pitfalls: [
    'Each endpoint, and the Stripe CLI, has a secret of its own.',
    'The whole secret is the key, including "whsec_".',
  ],
  sample: {
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: '{"id":"evt_1NG8Du2eZvKYlo2CUI79vXWy","object":"event","type":"payment_intent.succeeded","data":{"object":{}}}',
  },
};
