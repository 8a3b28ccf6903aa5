import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const typeform: Provider = {
  id: 'typeform',
  name: 'Typeform',
  sources: [
    'https://www.typeform.com/developers/webhooks/secure-your-webhooks/',
    'https://www.typeform.com/developers/webhooks/example-payload/',
  ],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'typeform-signature', prefix: 'sha256=', encoding: 'base64' })],
  secretFrom: 'platform',
  secretHelp: 'Paste the secret in the form under Connect > Webhooks > Edit > Secret.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { field: 'event_id' },
  eventType: { field: 'event_type' },
  events: ['form_response', 'form_response_partial'],
  pitfalls: [
    'The prefix is sha256=, but the signature after it is base64, not hex.',
    'A webhook without a secret is not signed and is refused.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"event_id":"LtWXD3crgy","event_type":"form_response","form_response":{"form_id":"lT4Z3j","token":"a3a12ec67a1365927098a606107fac15","submitted_at":"2018-01-18T18:17:02Z","landed_at":"2018-01-18T18:07:02Z","calculated":{"score":9},"definition":{"id":"lT4Z3j","title":"Webhooks example","fields":[]},"answers":[]}}',
  },
};
