import { postmark } from '../../../src/webhooks/providers/postmark.ts';
import type { Vectors } from './vector.ts';

// Postmark signs nothing: the delivery is the documented one, with the credentials of the RFC's example.
export const vectors: Vectors = async () => [
  {
    provider: 'postmark',
    source:
      'https://postmarkapp.com/developer/webhooks/webhooks-overview and https://www.rfc-editor.org/rfc/rfc7617#section-2',
    secret: 'Aladdin:open sesame',
    request: {
      headers: { ...postmark.sample.headers, authorization: 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==' },
      body: postmark.sample.body,
    },
  },
];
