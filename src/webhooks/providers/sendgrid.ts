import type { Provider } from './provider.ts';

/** Signed Event Webhook. */
export const sendgrid: Provider = {
  id: 'sendgrid',
  name: 'SendGrid',
  sources: [
    'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features',
    'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'ecdsa-p256-sha256',
      signature: {
        header: 'x-twilio-email-event-webhook-signature',
        prefix: '',
        encoding: 'base64',
        format: 'plain',
      },
      signed: '{timestamp}{body}',
      timestamp: { header: 'x-twilio-email-event-webhook-timestamp', unit: 's', toleranceSeconds: 600 },
      secret: { encoding: 'text', prefix: '' },
      key: 'spki-base64',
    },
  ],
  secretFrom: 'sender',
  secretHelp:
    'Copy the verification key (a public key) under Settings > Mail Settings > Event Webhooks > Security features.',
  protects: { body: true, url: false, time: true, sender: true },
  events: [
    'processed',
    'dropped',
    'delivered',
    'deferred',
    'bounce',
    'open',
    'click',
    'spamreport',
    'unsubscribe',
    'group_unsubscribe',
    'group_resubscribe',
  ],
  pitfalls: [
    'A delivery is an array of events, each with its own sg_event_id.',
    'The Signed Event Webhook is off by default; deliveries without it are refused.',
    'Inbound Parse is another webhook, which this entry does not cover.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '[{"email":"example@test.com","timestamp":1513299569,"smtp-id":"<14c5d75ce93.dfd.64b469@ismtpd-555>","event":"processed","sg_event_id":"sg_event_id","sg_message_id":"sg_message_id"}]\r\n',
  },
};
