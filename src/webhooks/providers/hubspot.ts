import type { Provider } from './provider.ts';

export const hubspot: Provider = {
  id: 'hubspot',
  name: 'HubSpot',
  sources: [
    'https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests',
    'https://developers.hubspot.com/docs/api-reference/webhooks-webhooks-v3/guide',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: { header: 'x-hubspot-signature-v3', prefix: '', encoding: 'base64', format: 'plain' },
      signed: '{method}{url}{body}{timestamp}',
      timestamp: { header: 'x-hubspot-request-timestamp', unit: 'ms', toleranceSeconds: 300 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: "Copy the app's client secret from its Auth tab.",
  protects: { body: true, url: true, time: true, sender: true },
  events: [
    'contact.creation',
    'contact.deletion',
    'contact.propertyChange',
    'company.creation',
    'company.propertyChange',
    'deal.creation',
    'deal.propertyChange',
    'ticket.creation',
  ],
  ackAfterMs: 4000,
  pitfalls: [
    'A delivery is an array of up to 100 events, each with its own eventId and subscriptionType.',
    'HubSpot signs the URL as registered, so gateway.publicUrl must be that URL, without escaped characters.',
    'The signatures of versions 1 and 2 are not accepted, because they do not include a time.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123,"changeSource":"CRM","changeFlag":"NEW","appId":54321}]',
  },
};
