import type { Provider } from './provider.ts';

export const resend: Provider = {
  id: 'resend',
  name: 'Resend',
  sources: [
    'https://resend.com/docs/webhooks/verify-webhooks-requests',
    'https://resend.com/docs/webhooks/event-types',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: {
        header: 'svix-signature',
        prefix: '',
        encoding: 'base64',
        format: { separator: ' ', assign: ',', key: 'v1' },
      },
      signed: '{id}.{timestamp}.{body}',
      timestamp: { header: 'svix-timestamp', unit: 's', toleranceSeconds: 300 },
      id: { header: 'svix-id' },
      secret: { encoding: 'base64', prefix: 'whsec_' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the signing secret (whsec_…) from the page of the webhook.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { header: 'svix-id' },
  eventType: { field: 'type' },
  events: [
    'email.sent',
    'email.delivered',
    'email.delivery_delayed',
    'email.complained',
    'email.bounced',
    'email.opened',
    'email.clicked',
    'email.failed',
    'email.received',
    'contact.created',
    'contact.updated',
    'contact.deleted',
    'domain.created',
    'domain.updated',
    'domain.deleted',
  ],
  pitfalls: ['Each webhook has its own secret; the API key does not sign.'],
  sample: {
    headers: { 'content-type': 'application/json', 'svix-id': 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W' },
    body: '{"type":"email.sent","created_at":"2024-02-22T23:41:12.126Z","data":{"created_at":"2024-02-22T23:41:11.894719+00:00","email_id":"56761188-7520-42d8-8898-ff6fc54ce618","from":"Acme <onboarding@resend.dev>","to":["delivered@resend.dev"],"subject":"Sending this example"}}',
  },
};
