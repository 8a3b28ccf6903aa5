import type { Provider } from './provider.ts';

export const docusign: Provider = {
  id: 'docusign',
  name: 'Docusign Connect',
  sources: [
    'https://developers.docusign.com/platform/webhooks/connect/hmac',
    'https://developers.docusign.com/platform/webhooks/connect/validate',
    'https://developers.docusign.com/platform/webhooks/connect/implement',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: {
        header: 'x-docusign-signature-1',
        prefix: '',
        encoding: 'base64',
        format: 'plain',
        // One header for each active Connect key.
        alternatives: [2, 3, 4, 5, 6, 7, 8, 9].map((key) => ({ header: `x-docusign-signature-${key}` })),
      },
      signed: '{body}',
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Create the key under Settings > Connect > Connect keys, and choose Include HMAC signature.',
  protects: { body: true, url: false, time: false, sender: true },
  eventType: { field: 'event' },
  events: [
    'envelope-sent',
    'envelope-delivered',
    'envelope-completed',
    'envelope-declined',
    'envelope-voided',
    'recipient-sent',
    'recipient-delivered',
    'recipient-completed',
    'recipient-declined',
  ],
  ackAfterMs: 4000,
  pitfalls: [
    'Of several Connect keys, the signatures of the first nine are checked (X-DocuSign-Signature-1 to -9).',
    'Choose the data format JSON (REST v2.1): the older configurations send XML.',
  ],
  sample: {
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: '{"event":"envelope-completed","apiVersion":"v2.1","uri":"/restapi/v2.1/accounts/b123a4e6-094f-43aa-b2d9-30076d0af3c7/envelopes/6b0cff6d-1def-40c3-9684-1587c8fcaa2c","retryCount":0,"configurationId":123456,"generatedDateTime":"2024-02-13T14:34:42.2740396Z","data":{"accountId":"b123a4e6-094f-43aa-b2d9-30076d0af3c7","userId":"861d2a78-7e55-42a1-ba7f-7501cc1a0d28","envelopeId":"6b0cff6d-1def-40c3-9684-1587c8fcaa2c"}}',
  },
};
