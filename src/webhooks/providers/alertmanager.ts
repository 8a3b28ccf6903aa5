import type { Provider } from './provider.ts';

export const alertmanager: Provider = {
  id: 'alertmanager',
  name: 'Prometheus Alertmanager',
  sources: [
    'https://prometheus.io/docs/alerting/latest/configuration/#webhook_config',
    'https://prometheus.io/docs/alerting/latest/configuration/#http_config',
  ],
  checkedOn: '2026-11-23',
  auth: [{ type: 'token', at: { header: 'authorization' }, prefix: 'Bearer ' }],
  secretFrom: 'platform',
  secretHelp: 'Set http_config.authorization.credentials of the webhook_config to the secret.',
  protects: { body: false, url: false, time: false, sender: true },
  eventType: { field: 'status' },
  events: ['firing', 'resolved'],
  sendsHeaders: true,
  pitfalls: [
    'For http_config.basic_auth, declare auth.type "basic" instead of this provider.',
    'One delivery contains all alerts of a group, so a handler must loop over "alerts".',
    'Alertmanager repeats a firing group after repeat_interval with the same groupKey.',
    'Alertmanager retries only after status 429 and 5xx.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'user-agent': 'Alertmanager/0.28.1' },
    body:
      '{"version":"4","groupKey":"{}:{alertname=\\"HighLatency\\"}","truncatedAlerts":0,"status":"firing",' +
      '"receiver":"team-x","groupLabels":{"alertname":"HighLatency"},"commonLabels":{"alertname":"HighLatency"},' +
      '"commonAnnotations":{},"externalURL":"http://alertmanager.example.com:9093","alerts":[{"status":"firing",' +
      '"labels":{"alertname":"HighLatency"},"annotations":{},"startsAt":"2026-01-02T15:04:05Z",' +
      '"endsAt":"0001-01-01T00:00:00Z","generatorURL":"http://prometheus.example.com/graph","fingerprint":"4d09bbdd04b9e2b6"}]}',
  },
};
