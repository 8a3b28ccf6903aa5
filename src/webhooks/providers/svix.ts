import type { Provider } from './provider.ts';
import { standardScheme } from './standard-webhooks.ts';

export const svix: Provider = {
  id: 'svix',
  name: 'Svix',
  sources: ['https://docs.svix.com/receiving/verifying-payloads/how-manual'],
  checkedOn: '2026-11-23',
  auth: [standardScheme('svix'), standardScheme('webhook')],
  secretFrom: 'sender',
  secretHelp: 'Copy the signing secret (whsec_…) of the endpoint in the App Portal.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { header: 'svix-id' },
  pitfalls: ['The key is the decoded base64 after "whsec_", not the text of the secret.'],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"test":2432232314}',
  },
};
