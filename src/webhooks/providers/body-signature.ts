import type { SignatureAuth } from '../../contracts/index.ts';

type Signature = SignatureAuth['signature'];

/** The most common scheme: HMAC-SHA256 of the body with the text of the secret, in hex unless told otherwise. */
export function bodySignature(signature: Partial<Signature> & { header: string }): SignatureAuth {
  return {
    type: 'signature',
    algorithm: 'hmac-sha256',
    signature: { prefix: '', encoding: 'hex', format: 'plain', ...signature },
    signed: '{body}',
    secret: { encoding: 'text', prefix: '' },
  };
}
