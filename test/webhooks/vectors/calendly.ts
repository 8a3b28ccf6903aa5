import type { Vectors } from './vector.ts';

// The template states the signed text, the algorithm, the encoding and the headers.
export const vectors: Vectors = async () => [
  {
    provider: 'calendly',
    source:
      "Made once with signPayload('sha256Verifier') of @redwoodjs/api@8.9.0 and the template of webhookProviderConfigs.calendly in @trigger.dev/core@4.8.3, a third party's description, and recorded",
    secret: 'calendly_example_signing_key',
    at: Date.UTC(2026, 0, 1),
    request: {
      headers: {
        'content-type': 'application/json',
        'calendly-webhook-signature':
          't=1767225600,v1=da0ec4691e115d081fb1062d5834c8f23023723aa91aba859d3788ebe99a234b',
      },
      body: '{"created_at":"2020-11-23T17:51:19.000000Z","created_by":"https://api.calendly.com/users/AAAAAAAAAAAAAAAA","event":"invitee.created","payload":{"email":"test@example.com","name":"John Doe","status":"active","uri":"https://api.calendly.com/scheduled_events/AAAAAAAAAAAAAAAA/invitees/AAAAAAAAAAAAAAAA"}}',
    },
  },
];
