import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const circleci: Provider = {
  id: 'circleci',
  name: 'CircleCI',
  sources: [
    'https://circleci.com/docs/guides/integration/outbound-webhooks/',
    'https://circleci.com/docs/reference/outbound-webhooks-reference/',
  ],
  checkedOn: '2026-11-23',
  auth: [
    bodySignature({
      header: 'circleci-signature',
      format: { separator: ',', assign: '=', key: 'v1' },
    }),
  ],
  secretFrom: 'platform',
  secretHelp: 'Paste the secret under Project Settings > Webhooks > Secret token.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { field: 'id' },
  eventType: { header: 'circleci-event-type' },
  events: ['workflow-completed', 'job-completed'],
  ackAfterMs: 4000,
  pitfalls: [
    'A project has at most five webhooks.',
    'The secret token is optional at CircleCI. Deliveries without it are refused.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'circleci-event-type': 'workflow-completed' },
    body:
      '{"id":"3888f21b-eaa7-38e3-8f3d-75a63bba8895","type":"workflow-completed","happened_at":"2021-09-01T22:49:34.317Z",' +
      '"webhook":{"id":"cf8c4fdd-0587-4da1-b4ca-4846e9640af9","name":"Sample Webhook"},' +
      '"project":{"id":"84996744-a854-4f5e-aea3-04e2851dc1d2","name":"webhook-service","slug":"github/circleci/webhook-service"},' +
      '"workflow":{"id":"fda08377-fe7e-46b1-8992-3a7aaecac9c3","name":"build-test-deploy","status":"success"}}',
  },
};
