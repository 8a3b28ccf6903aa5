import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => [
  {
    provider: 'bitbucket',
    source: 'https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/',
    secret: "It's a Secret to Everybody",
    format: 'raw',
    request: {
      headers: {
        'content-type': 'application/json',
        'x-event-key': 'repo:push',
        'x-hub-signature': 'sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9',
      },
      body: 'Hello World!',
    },
  },
];
