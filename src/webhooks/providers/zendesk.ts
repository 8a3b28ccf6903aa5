import type { Provider } from './provider.ts';

export const zendesk: Provider = {
  id: 'zendesk',
  name: 'Zendesk',
  sources: [
    'https://developer.zendesk.com/documentation/webhooks/verifying/',
    'https://developer.zendesk.com/documentation/webhooks/anatomy-of-a-webhook-request/',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: { header: 'x-zendesk-webhook-signature', prefix: '', encoding: 'base64', format: 'plain' },
      signed: '{timestamp}{body}',
      timestamp: { header: 'x-zendesk-webhook-signature-timestamp', unit: 'iso', toleranceSeconds: 300 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp:
    'Copy the signing secret in Admin Center under Apps and integrations > Webhooks > (webhook) > Reveal secret.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { header: 'x-zendesk-webhook-invocation-id' },
  eventType: { field: 'type' },
  events: [
    'zen:event-type:ticket.created',
    'zen:event-type:ticket.status_changed',
    'zen:event-type:ticket.comment_added',
    'zen:event-type:user.created',
    'zen:event-type:organization.created',
    'zen:event-type:article.published',
  ],
  ackAfterMs: 8000,
  sendsHeaders: true,
  pitfalls: [
    'Before a webhook is saved, its test requests are signed with the fixed secret of the documentation.',
    'A webhook of a trigger or automation sends the body that its author wrote, so it may have no event type.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'x-zendesk-webhook-invocation-id': '8350205582' },
    body: '{"type":"zen:event-type:user.created","account_id":22129848,"id":"2b24ef10-19df-42e0-8d88-0ba1d5d8f9a3","time":"2022-06-30T14:02:05Z","zendesk_event_version":"2022-06-20","subject":"zen:user:10002","detail":{"id":"10002","role":"end-user"},"event":{}}',
  },
};
