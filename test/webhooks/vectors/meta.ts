import type { Vectors } from './vector.ts';

/** Secret and signature of the test "signature match" of Meta's SDK. */
export const META_SOURCE =
  'https://github.com/WhatsApp/WhatsApp-Nodejs-SDK: src/__tests__/utils.test.ts and jest.config.ts (Meta Platforms)';
export const META_SECRET = 'TEST_APP_SECRET';
export const META_SIGNATURE = 'sha256=0c61947b610d4f45e65f3d680e26027121ec2413e77598bcb6cfc6e0d9888221';

export const vectors: Vectors = async () => [
  {
    provider: 'meta',
    source: META_SOURCE,
    secret: META_SECRET,
    format: 'raw',
    request: {
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': META_SIGNATURE },
      body: 'test',
    },
  },
];
