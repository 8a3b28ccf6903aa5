import type { Provider } from './provider.ts';

export const airtable: Provider = {
  id: 'airtable',
  name: 'Airtable',
  sources: [
    'https://airtable.com/developers/web/api/webhooks-overview',
    'https://airtable.com/developers/web/api/create-a-webhook',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: {
        header: 'x-airtable-content-mac',
        prefix: 'hmac-sha256=',
        encoding: 'hex',
        format: 'plain',
      },
      signed: '{body}',
      secret: { encoding: 'base64', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp:
    'Store macSecretBase64 from the answer to the request that creates the webhook; it is shown once.',
  protects: { body: true, url: false, time: false, sender: true },
  accepted: { status: 200, body: '' },
  pitfalls: [
    'A notification has no data: read the changes with GET /v0/bases/{baseId}/webhooks/{webhookId}/payloads.',
    'The first notification comes before the secret can be stored and is refused; Airtable repeats it.',
    'A webhook expires after seven days unless it is refreshed or its payloads are read.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"base":{"id":"app00000000000000"},"webhook":{"id":"ach00000000000000"},"timestamp":"2022-02-01T21:25:05.663Z"}',
  },
};
