import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

/** Webhooks that an administrator creates in Jira Cloud. */
export const jira: Provider = {
  id: 'jira',
  name: 'Jira',
  sources: ['https://developer.atlassian.com/cloud/jira/platform/webhooks/#secure-admin-webhooks'],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'x-hub-signature', prefix: 'sha256=' })],
  secretFrom: 'either',
  secretHelp: 'Paste or generate the secret in Jira under System > WebHooks > (webhook) > Secret.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { header: 'x-atlassian-webhook-identifier' },
  eventType: { field: 'webhookEvent' },
  events: [
    'jira:issue_created',
    'jira:issue_updated',
    'jira:issue_deleted',
    'comment_created',
    'comment_updated',
    'worklog_created',
    'sprint_started',
    'sprint_closed',
    'jira:version_released',
  ],
  pitfalls: [
    'Only webhooks of administrators are signed: those that apps register over OAuth or Connect carry a JWT instead.',
    'A webhook without a secret is not signed and is refused.',
  ],
  sample: {
    headers: {
      'content-type': 'application/json',
      'x-atlassian-webhook-identifier': '2f7c1c8e-6c0f-4b5a-9d5e-0d1f3c1f7a11',
    },
    body: '{"timestamp":1606480436302,"webhookEvent":"jira:issue_created","issue_event_type_name":"issue_created","user":{"accountId":"99:27935d01-92a7-4687-8272-a9b8d3b2ae2e"},"issue":{"id":"99291","self":"https://jira.example.com/rest/api/2/issue/99291","key":"JRA-20002","fields":{"summary":"I feel the need for speed"}}}',
  },
};
