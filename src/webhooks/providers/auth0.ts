import type { Provider } from './provider.ts';

export const auth0: Provider = {
  id: 'auth0',
  name: 'Auth0',
  sources: [
    'https://auth0.com/docs/customize/events/event-streams',
    'https://auth0.com/docs/customize/log-streams/custom-log-streams',
  ],
  checkedOn: '2026-11-23',
  auth: [{ type: 'token', at: { header: 'authorization' }, prefix: 'Bearer ' }],
  secretFrom: 'platform',
  secretHelp:
    'Event streams: paste the secret as the bearer token of the webhook destination. Log streams: enter "Bearer ", ' +
    'followed by the secret, under Monitoring > Streams > Custom Webhook > Authorization Token.',
  protects: { body: false, url: false, time: false, sender: true },
  deliveryId: { field: 'id' },
  eventType: { field: 'type' },
  events: [
    'user.created',
    'user.updated',
    'user.deleted',
    'organization.created',
    'organization.updated',
    'organization.deleted',
    'organization.member.added',
    'organization.member.deleted',
  ],
  sendsHeaders: true,
  pitfalls: [
    'Auth0 sends the Authorization Token of a log stream unchanged, so the word "Bearer" must be part of it.',
    'Choose the content format "JSON Array" for log streams: JSON Lines is not one JSON document.',
    'A log stream sends batches without an event type.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"specversion":"1.0","type":"user.created","source":"urn:auth0:example.auth0.com","id":"evt_1234567890abcdef",' +
      '"time":"2025-02-01T12:34:56Z","data":{"object":{"user_id":"auth0|507f1f77bcf86cd799439020","email":"john@example.com"}}}',
  },
};
