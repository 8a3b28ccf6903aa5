import type { Vectors } from './vector.ts';

// Neither Trello nor Atlassian publishes a signature. The vector is from the server library of 18F, a US agency.
export const vectors: Vectors = async () => [
  {
    provider: 'trello',
    source:
      'https://github.com/18F/trello-webhook-server/blob/b0a4db8b7fa3d66265b65921eafc5a06ed2487c7/test/webhook-verify-fail.json',
    secret: 'client-secret',
    request: {
      url: 'https://something',
      headers: {
        'content-type': 'application/json',
        'x-trello-webhook': '/qKoB9Rf4446ZFqRNhV5uDojdas=',
      },
      body: '{ "some": "data", "value": 3 }',
    },
  },
];
