import type { Provider } from './provider.ts';
import { standardScheme } from './standard-webhooks.ts';

export const supabase: Provider = {
  id: 'supabase',
  name: 'Supabase',
  sources: [
    'https://supabase.com/docs/guides/auth/auth-hooks',
    'https://supabase.com/docs/guides/database/webhooks',
  ],
  checkedOn: '2026-11-23',
  auth: [
    { ...standardScheme('webhook'), secret: { encoding: 'base64', prefix: 'v1,whsec_' } },
    { type: 'token', at: { header: 'authorization' }, prefix: 'Bearer ' },
  ],
  secretFrom: 'either',
  secretHelp:
    'Auth Hooks: generate the secret under Authentication > Hooks, and pipe all of "v1,whsec_…" into provision. Database ' +
    'Webhooks: add the HTTP header Authorization with the value "Bearer <secret>".',
  protects: { body: false, url: false, time: false, sender: true },
  firstSchemeProtects: { body: true, url: false, time: true, sender: true },
  deliveryId: { header: 'webhook-id' },
  eventType: { field: 'type' },
  events: ['INSERT', 'UPDATE', 'DELETE'],
  pitfalls: [
    'Only Auth Hooks are signed. Database Webhooks send the secret itself.',
    'Supabase uses the answer of an Auth Hook and waits five seconds for it, so declare reply "handler".',
    'A Database Webhook has no id and is not repeated after a failure.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"type":"INSERT","table":"profiles","schema":"public","record":{"id":1,"name":"Ada"},"old_record":null}',
  },
};
