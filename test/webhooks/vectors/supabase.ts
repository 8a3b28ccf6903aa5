import { Webhook } from 'standardwebhooks';
import { supabase } from '../../../src/webhooks/providers/supabase.ts';
import type { Vectors } from './vector.ts';

const SECRET = 'v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const ID = '6f8b4b2e-7a6f-4c55-9f3b-0c0d6a0f0b1a';
/** Body of the Send SMS hook. */
const HOOK_BODY =
  '{"user":{"id":"8484b834-f29e-4af2-bf42-80644d154f76","aud":"authenticated","role":"authenticated","email":"valid.email@supabase.io","phone":"1234567890"},"sms":{"otp":"561166"}}';
const AT = 1_763_900_000_000;

export const vectors: Vectors = async () => {
  const { headers, body } = supabase.sample;
  // Supabase documents this way of passing the secret to the library.
  const signature = new Webhook(SECRET.replace('v1,whsec_', '')).sign(ID, new Date(AT), HOOK_BODY);
  return [
    {
      provider: 'supabase',
      source:
        'standardwebhooks@1.1.1 Webhook.sign, as https://supabase.com/docs/guides/auth/auth-hooks uses it',
      secret: SECRET,
      at: AT,
      request: {
        headers: {
          ...headers,
          'webhook-id': ID,
          'webhook-timestamp': String(AT / 1000),
          'webhook-signature': signature,
        },
        body: HOOK_BODY,
      },
    },
    {
      provider: 'supabase',
      source: 'https://supabase.com/docs/guides/database/webhooks (payload, with an HTTP header)',
      secret: 'database-webhook-secret',
      request: { headers: { ...headers, authorization: 'Bearer database-webhook-secret' }, body },
    },
  ];
};
