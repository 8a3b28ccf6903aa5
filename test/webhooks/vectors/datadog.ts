import { datadog } from '../../../src/webhooks/providers/datadog.ts';
import type { Vectors } from './vector.ts';

const { headers, body } = datadog.sample;

export const vectors: Vectors = async () => [
  {
    provider: 'datadog',
    source: 'https://docs.datadoghq.com/integrations/webhooks/ (custom headers)',
    secret: 'datadog-secret',
    request: { headers: { ...headers, authorization: 'Bearer datadog-secret' }, body },
  },
];
