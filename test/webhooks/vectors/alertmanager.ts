import { alertmanager } from '../../../src/webhooks/providers/alertmanager.ts';
import type { Vectors } from './vector.ts';

const { headers, body } = alertmanager.sample;

export const vectors: Vectors = async () => [
  {
    provider: 'alertmanager',
    source: 'https://prometheus.io/docs/alerting/latest/configuration/#http_config (authorization)',
    secret: 'alertmanager-credentials',
    request: { headers: { ...headers, authorization: 'Bearer alertmanager-credentials' }, body },
  },
];
