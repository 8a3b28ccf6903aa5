import { cloudevents } from '../../../src/webhooks/providers/cloudevents.ts';
import type { Vectors } from './vector.ts';

const { headers, body } = cloudevents.sample;
const SPEC = 'https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents';
const TOKEN = 'mF_9.B5f-4.1JqM';

export const vectors: Vectors = async () => [
  {
    provider: 'cloudevents',
    source: `${SPEC}/http-webhook.md#31-authorization-request-header-field`,
    secret: TOKEN,
    request: { headers: { ...headers, authorization: `Bearer ${TOKEN}` }, body },
  },
  {
    provider: 'cloudevents',
    source: `${SPEC}/http-webhook.md#32-uri-query-parameter`,
    secret: TOKEN,
    request: { url: `https://server.example.com/resource?access_token=${TOKEN}&p=q`, headers, body },
  },
];
