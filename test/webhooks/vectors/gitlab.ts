import { Webhook } from 'standardwebhooks';
import type { Vectors } from './vector.ts';

const AT = Date.UTC(2026, 5, 1);
const SIGNING_TOKEN = 'whsec_dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3Q=';
const BODY =
  '{"object_kind":"push","event_name":"push","ref":"refs/heads/master","user_username":"jsmith","project_id":15}';
const HEADERS = {
  'content-type': 'application/json',
  'user-agent': 'GitLab/15.5.0-pre',
  'x-gitlab-instance': 'https://gitlab.com',
  'x-gitlab-event': 'Push Hook',
  'x-gitlab-event-uuid': '13792a34-cac6-4fda-95a8-c58e00a3954e',
};

export const vectors: Vectors = async () => {
  const id = 'f5e57fe9-5a8f-4a1c-b7c1-0b6e7a2a2b0d';
  return [
    {
      provider: 'gitlab',
      source: 'standardwebhooks@1.1.1, which GitLab names as the format of its signing token',
      secret: SIGNING_TOKEN,
      at: AT,
      request: {
        headers: {
          ...HEADERS,
          'idempotency-key': id,
          'webhook-id': id,
          'webhook-timestamp': String(AT / 1000),
          'webhook-signature': new Webhook(SIGNING_TOKEN).sign(id, new Date(AT), BODY),
        },
        body: BODY,
      },
    },
    {
      provider: 'gitlab',
      source:
        'https://docs.gitlab.com/user/project/integrations/webhooks/ (a secret token is sent unchanged)',
      secret: 'a secret token of the operator',
      request: { headers: { ...HEADERS, 'x-gitlab-token': 'a secret token of the operator' }, body: BODY },
    },
  ];
};
