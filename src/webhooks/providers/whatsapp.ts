import { meta } from './meta.ts';
import type { Provider } from './provider.ts';

/** WhatsApp Business Platform (Cloud API). It is a product of Meta's webhooks, and signs as they do. */
export const whatsapp: Provider = {
  id: 'whatsapp',
  name: 'WhatsApp',
  sources: [
    'https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/create-webhook-endpoint',
    'https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/overview',
  ],
  checkedOn: '2026-11-23',
  auth: meta.auth,
  secretFrom: 'sender',
  secretHelp: 'Copy the app secret of App settings > Basic.',
  protects: meta.protects,
  eventType: { field: 'entry.0.changes.0.field' },
  events: [
    'messages',
    'message_template_status_update',
    'message_template_quality_update',
    'message_template_components_update',
    'template_category_update',
    'phone_number_name_update',
    'phone_number_quality_update',
    'account_alerts',
    'account_review_update',
    'account_update',
    'business_capability_update',
    'flows',
    'history',
    'security',
    'smb_message_echoes',
    'user_preferences',
  ],
  handshakes: meta.handshakes,
  ackAfterMs: meta.ackAfterMs,
  pitfalls: [
    'Enter any text as verify token; never the app secret.',
    'The secret is the app secret, not the access token.',
    'Messages and their statuses arrive under the same event, "messages", and can repeat for seven days.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'user-agent': 'facebookexternalua' },
    body: '{"object":"whatsapp_business_account","entry":[{"id":"102290129340398","changes":[{"value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550783881","phone_number_id":"106540352242922"},"messages":[{"from":"16505551234","id":"wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQzQTRBNjU5OUFFRTAzODEwMTQ0RgA=","timestamp":"1749416383","type":"text","text":{"body":"Does it come in another color?"}}]},"field":"messages"}]}]}',
  },
};
