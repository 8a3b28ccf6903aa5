import { META_SECRET, META_SIGNATURE, META_SOURCE } from './meta.ts';
import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => [
  {
    provider: 'whatsapp',
    source: META_SOURCE,
    secret: META_SECRET,
    format: 'raw',
    request: {
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': META_SIGNATURE },
      body: 'test',
    },
  },
];
