import type { Vectors } from './vector.ts';

// RedwoodJS writes hex. The template asks for base64, so the bytes were encoded again.
export const vectors: Vectors = async () => [
  {
    provider: 'zendesk',
    source:
      "Made once with signPayload('sha256Verifier') of @redwoodjs/api@8.9.0 and the template of webhookProviderConfigs.zendesk in @trigger.dev/core@4.8.3, a third party's description, and recorded",
    secret: 'dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==',
    at: Date.UTC(2026, 0, 1),
    request: {
      headers: {
        'content-type': 'application/json',
        'x-zendesk-webhook-invocation-id': '8350205582',
        'x-zendesk-webhook-signature': 'FWjZzhIiJfiRHi7xoZ2PsTZjMz529IIcGNuGJiNNeV4=',
        'x-zendesk-webhook-signature-timestamp': '2026-01-01T00:00:00Z',
      },
      body: '{"type":"zen:event-type:user.created","account_id":22129848,"id":"2b24ef10-19df-42e0-8d88-0ba1d5d8f9a3","time":"2022-06-30T14:02:05Z","zendesk_event_version":"2022-06-20","subject":"zen:user:10002","detail":{"id":"10002","role":"end-user"},"event":{}}',
    },
  },
];
