import type { Provider } from './provider.ts';

export const vercel: Provider = {
  id: 'vercel',
  name: 'Vercel',
  sources: ['https://vercel.com/docs/webhooks', 'https://vercel.com/docs/webhooks/webhooks-api'],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha1',
      signature: { header: 'x-vercel-signature', prefix: '', encoding: 'hex', format: 'plain' },
      signed: '{body}',
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp:
    'Vercel shows the secret once, after Settings > Webhooks > Create Webhook. For an integration it is the Client Secret.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { field: 'id' },
  eventType: { field: 'type' },
  events: [
    'deployment.created',
    'deployment.succeeded',
    'deployment.ready',
    'deployment.promoted',
    'deployment.canceled',
    'deployment.error',
    'deployment.check-rerequested',
    'project.created',
    'project.removed',
    'integration-configuration.removed',
    'integration-configuration.permission-upgraded',
    'domain.created',
  ],
  ackAfterMs: 25_000,
  pitfalls: [
    'Webhooks of a team need the Pro or Enterprise plan.',
    'Log drains and Vercel Blob use the same header with other secrets.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"id":"uev_oXp1wXxVCKqWzyvXYFFWnLCJ","type":"deployment.created","createdAt":1763900000000,"region":"sfo1",' +
      '"payload":{"team":{"id":"team_123"},"user":{"id":"user_123"},"deployment":{"id":"dpl_123","meta":{},' +
      '"url":"example-123.vercel.app","name":"example"},"target":"production","project":{"id":"prj_123"},"plan":"pro"}}',
  },
};
