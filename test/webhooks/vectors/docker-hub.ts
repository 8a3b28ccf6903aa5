import { dockerHub } from '../../../src/webhooks/providers/docker-hub.ts';
import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => [
  {
    provider: 'docker-hub',
    source:
      'https://docs.docker.com/docker-hub/repos/manage/webhooks/#example-webhook-payload (with a token in the URL)',
    secret: 'docker-hub-token',
    request: { url: 'https://svc.example.com/in/team/docker?token=docker-hub-token', ...dockerHub.sample },
  },
];
