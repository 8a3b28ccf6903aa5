import { auth0 } from '../../../src/webhooks/providers/auth0.ts';
import type { Vectors } from './vector.ts';

const { headers, body } = auth0.sample;

export const vectors: Vectors = async () => [
  {
    provider: 'auth0',
    source: 'https://auth0.com/docs/customize/events/create-an-event-stream (bearer token)',
    secret: '123456789',
    request: { headers: { ...headers, authorization: 'Bearer 123456789' }, body },
  },
];
