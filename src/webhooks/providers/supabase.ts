import type { Provider } from './provider.ts';

export const supabase: Provider = {
  id: 'supabase',
  name: 'Supabase',
  sources: [
    'https://supabase.com/docs/guides/auth/auth-hooks',
    'https://supabase.com/docs/guides/database/webhooks',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: {
        header: 'webhook-signature',
        prefix: '',
        encoding: 'base64',
        format: { separator: ' ', assign: ',', key: 'v1' },
      },
      signed: '{id}.{timestamp}.{body}',
      timestamp: { header: 'webhook-timestamp', unit: 's', toleranceSeconds: 300 },
      id: { header: 'webhook-id' },
      secret: { encoding: 'base64', prefix: 'v1,whsec_' },
    },
  ],
  secretFrom: 'sender',
  secretHelp:
    'Generate the secret of the HTTP hook under Authentication > Hooks, and pipe all of "v1,whsec_…" into provision.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { header: 'webhook-id' },
  pitfalls: [
    'This entry is for Auth Hooks. Database Webhooks are not signed: add a header with the secret to them and declare ' +
      'auth.type "secret".',
    'Supabase uses the answer of an Auth Hook and waits five seconds for it, so declare reply "handler".',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"user":{"id":"8484b834-f29e-4af2-bf42-80644d154f76","aud":"authenticated","role":"authenticated",' +
      '"email":"valid.email@supabase.io","phone":"1234567890"},"sms":{"otp":"561166"}}',
  },
};
