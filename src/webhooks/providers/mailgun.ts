import type { Provider } from './provider.ts';

/** Event webhooks, which send JSON. */
export const mailgun: Provider = {
  id: 'mailgun',
  name: 'Mailgun',
  sources: [
    'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
    'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: {
        field: 'signature.signature',
        prefix: '',
        encoding: 'hex',
        format: 'plain',
        // The signature of the primary account, in events of its subaccounts.
        alternatives: [{ field: 'signature.parent-signature' }],
      },
      signed: '{field:signature.timestamp}{field:signature.token}',
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the HTTP webhook signing key under Send > Sending > Webhooks.',
  protects: { body: false, url: false, time: false, sender: true },
  deliveryId: { field: 'signature.token' },
  eventType: { field: 'event-data.event' },
  events: ['accepted', 'delivered', 'failed', 'opened', 'clicked', 'unsubscribed', 'complained', 'stored'],
  accepted: { status: 200, body: '' },
  pitfalls: [
    'Mailgun signs only a timestamp and a token: a third party with one signature can send any body with it.',
    'The age of the timestamp is not checked, because Mailgun repeats failed deliveries for eight hours.',
    'The signing key of webhooks is not the API key.',
    'Events of a subaccount are signed with its key and with that of the primary account: either is accepted.',
    'Routes forward messages as forms with other fields; this entry covers event webhooks only.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"signature":{"timestamp":"1529006854","token":"a8ce0edb2dd8301dee6c2405235584e45aa91d1e9f979f3de0","signature":"d2271d12299f6592d9d44cd9d250f0704e4674c30d79d07c47a66f95ce71cf55"},"event-data":{"event":"opened","timestamp":1529006854.329574,"id":"DACSsAdVSeGpLid7TN03WA"}}',
  },
};
