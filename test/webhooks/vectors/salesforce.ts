import { salesforce } from '../../../src/webhooks/providers/salesforce.ts';
import type { Vectors } from './vector.ts';

const token = 'Jb2xSyPZ0hW5bXyJm3W4c1ZkqHn8vT6r';

// Salesforce signs nothing: the delivery is the documented message, sent to a URL with a token.
export const vectors: Vectors = async () => [
  {
    provider: 'salesforce',
    source:
      'Message with the elements of http://www.salesforce.com/us/developer/docs/api/Content/sforce_api_om_outboundmessaging_wsdl.htm',
    secret: token,
    request: {
      url: `https://hooks.example.com/in/default/crm?token=${token}`,
      headers: salesforce.sample.headers,
      body: salesforce.sample.body,
    },
  },
];
