import type { SignatureAuth } from '../../contracts/index.ts';
import type { Provider } from './provider.ts';

/** Scheme of Standard Webhooks, whose headers have a family name in common. */
export function standardScheme(family: 'webhook' | 'svix'): SignatureAuth {
  return {
    type: 'signature',
    algorithm: 'hmac-sha256',
    signature: {
      header: `${family}-signature`,
      prefix: '',
      encoding: 'base64',
      format: { separator: ' ', assign: ',', key: 'v1' },
    },
    signed: '{id}.{timestamp}.{body}',
    timestamp: { header: `${family}-timestamp`, unit: 's', toleranceSeconds: 300 },
    id: { header: `${family}-id` },
    secret: { encoding: 'base64', prefix: 'whsec_' },
  };
}

export const standardWebhooks: Provider = {
  id: 'standard-webhooks',
  name: 'Standard Webhooks',
  sources: ['https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md'],
  checkedOn: '2026-11-23',
  auth: [standardScheme('webhook'), standardScheme('svix')],
  secretFrom: 'either',
  secretHelp: 'Copy the secret (whsec_…) that the sender shows, or paste the generated one there.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { header: 'webhook-id' },
  eventType: { field: 'type' },
  pitfalls: ['The key is the decoded base64 after "whsec_", not the text of the secret.'],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"type":"contact.created","timestamp":"2022-11-03T20:26:10.344522Z","data":{"id":"1f81eb52-5198-4599-803e-771906343485"}}',
  },
};
