import type { Provider } from './provider.ts';

export const linear: Provider = {
  id: 'linear',
  name: 'Linear',
  sources: ['https://linear.app/developers/webhooks'],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: { header: 'linear-signature', prefix: '', encoding: 'hex', format: 'plain' },
      signed: '{body}',
      timestamp: { field: 'webhookTimestamp', unit: 'ms', toleranceSeconds: 60 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the signing secret from the page of the webhook under Settings > API > Webhooks.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { header: 'linear-delivery' },
  eventType: { header: 'linear-event' },
  events: [
    'Issue',
    'Comment',
    'IssueLabel',
    'Project',
    'ProjectUpdate',
    'Cycle',
    'Reaction',
    'Document',
    'Initiative',
    'Customer',
    'User',
    'IssueSLA',
    'OAuthApp',
  ],
  accepted: { status: 200, body: '' },
  ackAfterMs: 4000,
  pitfalls: [
    'The action (create, update or remove) is the field action of the body, not part of the event type.',
    'A clock that is wrong by more than a minute refuses all deliveries.',
  ],
  sample: {
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'linear-delivery': '234d1a4e-b617-4388-90fe-adc3633d6b72',
      'linear-event': 'Comment',
    },
    body: '{"action":"create","data":{"id":"2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9","createdAt":"2020-01-23T12:53:18.084Z","body":"Indeed, I think this is definitely an improvement over the previous version.","issueId":"539068e2-ae88-4d09-bd75-22eb4a59612f"},"type":"Comment","url":"https://linear.app/issue/LIN-1778/foo-bar#comment-77217de3","createdAt":"2020-01-23T12:53:18.084Z","webhookTimestamp":1676056940508}',
  },
};
