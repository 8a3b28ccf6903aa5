import type { Provider } from './provider.ts';

export const postmark: Provider = {
  id: 'postmark',
  name: 'Postmark',
  sources: ['https://postmarkapp.com/developer/webhooks/webhooks-overview'],
  checkedOn: '2026-11-23',
  auth: [{ type: 'basic' }],
  secretFrom: 'platform',
  secretHelp:
    'Write the user name and password into the URL of the webhook: https://<user>:<password>@<host>/…',
  protects: { body: false, url: false, time: false, sender: true },
  eventType: { field: 'RecordType' },
  events: ['Delivery', 'Bounce', 'SpamComplaint', 'Open', 'Click', 'SubscriptionChange', 'Inbound'],
  accepted: { status: 200, body: '' },
  sendsHeaders: true,
  pitfalls: [
    'Postmark signs nothing: Basic authentication is the only proof of the sender.',
    'The addresses are published at https://postmarkapp.com/support/article/800-ips-for-firewalls; add them as ipAllow.',
    'Messages of an inbound stream have no RecordType.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"RecordType":"Delivery","ServerID":23,"MessageStream":"outbound","MessageID":"00000000-0000-0000-0000-000000000000","Recipient":"john@example.com","Tag":"welcome-email","DeliveredAt":"2026-11-23T12:00:00Z","Details":"Test delivery webhook details","Metadata":{"example":"value"}}',
  },
};
