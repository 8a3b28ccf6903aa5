import type { Provider } from './provider.ts';

export const grafana: Provider = {
  id: 'grafana',
  name: 'Grafana Alerting',
  sources: [
    'https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/',
    'https://github.com/grafana/alerting/blob/main/http/hmac.go',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: { header: 'x-grafana-alerting-signature', prefix: '', encoding: 'hex', format: 'plain' },
      signed: '{timestamp}:{body}',
      timestamp: { header: 'x-grafana-alerting-signature-timestamp', unit: 's', toleranceSeconds: 300 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'platform',
  secretHelp:
    'Paste the secret in the contact point under HMAC Signature > Secret, and set Timestamp Header to ' +
    'X-Grafana-Alerting-Signature-Timestamp.',
  protects: { body: true, url: false, time: true, sender: true },
  eventType: { field: 'status' },
  events: ['firing', 'resolved'],
  sendsHeaders: true,
  pitfalls: [
    'Without Timestamp Header, Grafana signs the body alone and the delivery is refused.',
    'Versions before 12.0 sign nothing: declare auth.type "basic" for them.',
    'One delivery contains all alerts of a group, so a handler must loop over "alerts".',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'user-agent': 'Grafana' },
    body:
      '{"receiver":"My Super Webhook","status":"firing","orgId":1,"alerts":[{"status":"firing",' +
      '"labels":{"alertname":"High memory usage","team":"blue","zone":"us-1"},' +
      '"annotations":{"description":"The system has high memory usage","runbook_url":"https://myrunbook.com/runbook/1234",' +
      '"summary":"This alert was triggered for zone us-1"},"startsAt":"2021-10-12T09:51:03.157076+02:00",' +
      '"endsAt":"0001-01-01T00:00:00Z","generatorURL":"https://play.grafana.org/alerting/1afz29v7z/edit",' +
      '"fingerprint":"c6eadffa33fcdf37","values":{"B":44.23943737541908,"C":1}}],"groupLabels":{},' +
      '"commonLabels":{"team":"blue"},"commonAnnotations":{},"externalURL":"https://play.grafana.org/","version":"1",' +
      '"groupKey":"{}:{}","truncatedAlerts":0}',
  },
};
