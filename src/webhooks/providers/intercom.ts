import type { Provider } from './provider.ts';

export const intercom: Provider = {
  id: 'intercom',
  name: 'Intercom',
  sources: [
    'https://developers.intercom.com/docs/webhooks/webhook-notifications',
    'https://developers.intercom.com/docs/references/webhooks/webhook-models',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha1',
      signature: { header: 'x-hub-signature', prefix: 'sha1=', encoding: 'hex', format: 'plain' },
      signed: '{body}',
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: "Copy the app's client secret from the Developer Hub under Configure > Basic information.",
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { field: 'id' },
  eventType: { field: 'topic' },
  events: [
    'conversation.user.created',
    'conversation.user.replied',
    'conversation.admin.replied',
    'conversation.admin.closed',
    'contact.user.created',
    'contact.lead.created',
    'ticket.created',
    'ticket.state.updated',
    'ping',
  ],
  handshakes: [{ method: 'HEAD', when: [], isAuthenticated: false, reply: { status: 200, headers: {} } }],
  ackAfterMs: 4000,
  pitfalls: [
    'Intercom signs with the client secret of the app, not with an access token.',
    'Endpoints that need more than 500 ms receive notifications with a lower priority.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"type":"notification_event","id":"notif_78c122d0-23ba-11e4-9464-79b01267cc2e","topic":"contact.user.created","app_id":"a86dr8yl","data":{"type":"notification_event_data","item":{"type":"contact","id":"530370b477ad7120001d","external_id":"25","role":"user","name":"Hoban Washburne"}}}',
  },
};
