import { microsoftGraph } from '../../../src/webhooks/providers/microsoft-graph.ts';
import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => [
  {
    provider: 'microsoft-graph',
    source:
      'https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks#change-notification-example',
    secret: 'secretClientValue',
    request: microsoftGraph.sample,
  },
];
