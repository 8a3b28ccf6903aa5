import type { Vector, Vectors } from './vector.ts';

/** Example signatures of CircleCI's documentation, except those with a secret of less than 8 characters. */
const EXAMPLES = [
  {
    body: 'lalala',
    secret: 'another-secret',
    signature: 'daa220016c8f29a8b214fbfc3671aeec2145cfb1e6790184ffb38b6d0425fa00',
  },
  {
    body: 'an-important-request-payload',
    secret: 'hunter123',
    signature: '9be2242094a9a8c00c64306f382a7f9d691de910b4a266f67bd314ef18ac49fa',
  },
];

export const vectors: Vectors = async () =>
  EXAMPLES.map(
    ({ body, secret, signature }): Vector => ({
      provider: 'circleci',
      source:
        'https://circleci.com/docs/guides/integration/outbound-webhooks/#validate-webhooks (table of examples)',
      secret,
      format: 'raw',
      request: {
        headers: {
          'content-type': 'application/json',
          'circleci-signature': `v1=${signature},v2=...,v3=...`,
        },
        body,
      },
    }),
  );
