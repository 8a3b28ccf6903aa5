import type { Provider } from './provider.ts';

export const calendly: Provider = {
  id: 'calendly',
  name: 'Calendly',
  sources: [
    'https://developer.calendly.com/api-docs/overview/webhooks/webhook-signatures',
    'https://developer.calendly.com/api-docs/overview/webhooks/webhook-timeouts',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: {
        header: 'calendly-webhook-signature',
        prefix: '',
        encoding: 'hex',
        format: { separator: ',', assign: '=', key: 'v1' },
      },
      signed: '{timestamp}.{body}',
      timestamp: { param: 't', unit: 's', toleranceSeconds: 180 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'either',
  secretHelp:
    'Send the secret as signing_key when you create the subscription with a personal access token; an OAuth app has a webhook signing key of its own.',
  protects: { body: true, url: false, time: true, sender: true },
  eventType: { field: 'event' },
  events: [
    'invitee.created',
    'invitee.canceled',
    'invitee_no_show.created',
    'invitee_no_show.deleted',
    'routing_form_submission.created',
    'event_type.created',
    'event_type.updated',
    'event_type.deleted',
  ],
  ackAfterMs: 12_000,
  pitfalls: [
    'A subscription that was created without signing_key is not signed and is refused.',
    'Webhooks need a paid plan of Calendly and are created with its API only.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"created_at":"2020-11-23T17:51:19.000000Z","created_by":"https://api.calendly.com/users/AAAAAAAAAAAAAAAA","event":"invitee.created","payload":{"email":"test@example.com","name":"John Doe","status":"active","uri":"https://api.calendly.com/scheduled_events/AAAAAAAAAAAAAAAA/invitees/AAAAAAAAAAAAAAAA"}}',
  },
};
