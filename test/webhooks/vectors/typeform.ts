import type { Vectors } from './vector.ts';

// RedwoodJS writes hex. The template asks for base64, so the bytes were encoded again.
export const vectors: Vectors = async () => [
  {
    provider: 'typeform',
    source:
      "Made once with signPayload('sha256Verifier') of @redwoodjs/api@8.9.0 and the template of webhookProviderConfigs.typeform in @trigger.dev/core@4.8.3, a third party's description, and recorded",
    secret: 'typeform_example_secret',
    request: {
      headers: {
        'content-type': 'application/json',
        'typeform-signature': 'sha256=8Wlnu1tDI66Lil900N9FphH8CF+x4JyofJxMviPyvRw=',
      },
      body: '{"event_id":"LtWXD3crgy","event_type":"form_response","form_response":{"form_id":"lT4Z3j","token":"a3a12ec67a1365927098a606107fac15","submitted_at":"2018-01-18T18:17:02Z","landed_at":"2018-01-18T18:07:02Z","calculated":{"score":9},"definition":{"id":"lT4Z3j","title":"Webhooks example","fields":[]},"answers":[]}}',
    },
  },
];
