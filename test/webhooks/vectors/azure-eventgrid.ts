import { azureEventgrid } from '../../../src/webhooks/providers/azure-eventgrid.ts';
import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => [
  {
    provider: 'azure-eventgrid',
    source:
      'https://learn.microsoft.com/en-us/azure/event-grid/security-authentication (client secret as a query parameter)',
    secret: 'event-grid-key',
    request: { url: 'https://svc.example.com/in/team/grid?token=event-grid-key', ...azureEventgrid.sample },
  },
];
