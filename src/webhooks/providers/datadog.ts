import type { Provider } from './provider.ts';

export const datadog: Provider = {
  id: 'datadog',
  name: 'Datadog',
  sources: ['https://docs.datadoghq.com/integrations/webhooks/'],
  checkedOn: '2026-11-23',
  auth: [{ type: 'token', at: { header: 'authorization' }, prefix: 'Bearer ' }],
  secretFrom: 'platform',
  secretHelp: 'Enter {"Authorization": "Bearer <secret>"} as the custom headers of the webhook.',
  protects: { body: false, url: false, time: false, sender: true },
  deliveryId: { field: 'id' },
  eventType: { field: 'event_type' },
  events: [
    'ci_pipelines_alert',
    'ci_tests_alert',
    'composite_monitor',
    'error_tracking_alert',
    'event_alert',
    'event_v2_alert',
    'log_alert',
    'monitor_slo_alert',
    'metric_slo_alert',
    'outlier_monitor',
    'process_alert',
    'query_alert_monitor',
    'rum_alert',
    'service_check',
    'synthetics_alert',
    'trace_analytics_alert',
  ],
  ackAfterMs: 12_000,
  sendsHeaders: true,
  pitfalls: [
    'For a user and password in the URL, declare auth.type "basic" instead of this provider.',
    'A custom payload replaces the fields of the default one. Keep "id": "$ID" and "event_type": "$EVENT_TYPE" in it.',
    'Leave "Encode as form" unchecked.',
    'Datadog retries after a 5xx status only.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"body":"%%%\\n@webhook-svc\\n%%%","last_updated":"1406662672000","event_type":"query_alert_monitor",' +
      '"title":"[Triggered] [Memory Alert]","date":"1406662672000","org":{"id":"11023","name":"Datadog"},"id":"1234567"}',
  },
};
