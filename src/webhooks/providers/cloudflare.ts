import type { Provider } from './provider.ts';

export const cloudflare: Provider = {
  id: 'cloudflare',
  name: 'Cloudflare Notifications',
  sources: [
    'https://developers.cloudflare.com/notifications/get-started/configure-webhooks/',
    'https://developers.cloudflare.com/notifications/reference/webhook-payload-schema/',
  ],
  checkedOn: '2026-11-23',
  auth: [{ type: 'token', at: { header: 'cf-webhook-auth' } }],
  secretFrom: 'platform',
  secretHelp: 'Paste the secret under Notifications > Destinations > Webhooks > Secret.',
  protects: { body: false, url: false, time: false, sender: true },
  eventType: { field: 'alert_type' },
  events: [
    'dos_attack_l4',
    'dos_attack_l7',
    'http_alert_origin_error',
    'load_balancing_health_alert',
    'health_check_status_notification',
    'universal_ssl_event_type',
    'workers_alert',
    'incident_alert',
    'billing_usage_alert',
  ],
  // https://www.cloudflare.com/ips/
  ipAllow: [
    '173.245.48.0/20',
    '103.21.244.0/22',
    '103.22.200.0/22',
    '103.31.4.0/22',
    '141.101.64.0/18',
    '108.162.192.0/18',
    '190.93.240.0/20',
    '188.114.96.0/20',
    '197.234.240.0/22',
    '198.41.128.0/17',
    '162.158.0.0/15',
    '104.16.0.0/13',
    '104.24.0.0/14',
    '172.64.0.0/13',
    '131.0.72.0/22',
    '2400:cb00::/32',
    '2606:4700::/32',
    '2803:f800::/32',
    '2405:b500::/32',
    '2405:8100::/32',
    '2a06:98c0::/29',
    '2c0f:f248::/32',
  ],
  pitfalls: [
    '"Save and Test" sends a message with only the field "text". Cloudflare saves the webhook only if it is answered with 2xx.',
    'The secret of a webhook cannot be edited: delete the webhook and create a new one.',
    'Cloudflare Stream signs its webhooks with the header Webhook-Signature. Declare auth.type "signature" for them.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"name":"Origin errors","text":"Your origin returned errors.","data":{},"ts":1136214245,' +
      '"account_id":"023e105f4ecef8ad9ca31a8372d0c353","policy_id":"0da2b59e-f118-439d-8097-bdfb215203c9",' +
      '"policy_name":"Origin errors","alert_type":"http_alert_origin_error",' +
      '"alert_correlation_id":"7d8a3d5e-6b3f-4b0a-9b55-4f5f0a2f9c11","alert_event":"ALERT_STATE_EVENT_START"}',
  },
};
