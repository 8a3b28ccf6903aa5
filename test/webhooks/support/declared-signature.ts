import { WebhookAuthConfig } from '../../../src/contracts/index.ts';
import type { DeclaredAuth } from '../../../src/webhooks/schemes/index.ts';

export const SECRET = 'a-secret-of-the-tests';
export const NOW = Date.UTC(2030, 0, 1);

/** A declared signature in the header `x-sig`, in hex unless told otherwise. */
export const signature = (signed: string, more: object = {}): DeclaredAuth =>
  WebhookAuthConfig.parse({
    type: 'signature',
    algorithm: 'hmac-sha256',
    signature: { header: 'x-sig', encoding: 'hex' },
    signed,
    ...more,
  }) as DeclaredAuth;
