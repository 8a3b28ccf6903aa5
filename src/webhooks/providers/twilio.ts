import type { Provider } from './provider.ts';

export const twilio: Provider = {
  id: 'twilio',
  name: 'Twilio',
  sources: [
    'https://www.twilio.com/docs/usage/security#validating-requests',
    'https://www.twilio.com/docs/usage/webhooks/webhooks-security',
  ],
  checkedOn: '2026-11-23',
  auth: [{ type: 'built-in', verifier: 'twilio' }],
  secretFrom: 'sender',
  secretHelp: 'Copy the primary auth token of the account in the Twilio console.',
  protects: { body: true, url: true, time: false, sender: true },
  body: 'form',
  deliveryId: { header: 'i-twilio-idempotency-token' },
  accepted: {
    status: 200,
    contentType: 'text/xml',
    body: '<?xml version="1.0" encoding="UTF-8"?><Response/>',
  },
  ackAfterMs: 12_000,
  pitfalls: [
    'The URL is signed: set gateway.publicUrl to the address that Twilio calls.',
    'The primary auth token signs. A secondary token signs only after its promotion.',
    'The signature covers the names and values of a form without separators, so "ab=c" and "a=bc" have the same one.',
    'For products that post JSON, such as Event Streams, declare "body": "json".',
    'To answer a call or a message with TwiML, use reply "handler".',
  ],
  sample: {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'CallSid=CA1234567890ABCDE&Caller=%2B14158675310&Digits=1234&From=%2B14158675310&To=%2B18005551212',
  },
};
