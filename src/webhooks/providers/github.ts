import type { Provider } from './provider.ts';

export const github: Provider = {
  id: 'github',
  name: 'GitHub',
  sources: ['https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries'],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: { header: 'x-hub-signature-256', prefix: 'sha256=', encoding: 'hex', format: 'plain' },
      signed: '{body}',
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'platform',
  secretHelp: 'Paste the secret under Settings > Webhooks > Secret.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { header: 'x-github-delivery' },
  eventType: { header: 'x-github-event' },
  events: ['push', 'pull_request', 'issues', 'issue_comment', 'release', 'workflow_run', 'ping'],
  pitfalls: ['Choose the content type application/json: GitHub sends a form by default.'],
  sample: {
    headers: { 'content-type': 'application/json', 'x-github-event': 'ping' },
    body: '{"zen":"Keep it logically awesome.","hook_id":1}',
  },
};
