import type { Vectors } from './vector.ts';

// The template states the signed text, the algorithm, the encoding and the headers.
export const vectors: Vectors = async () => [
  {
    provider: 'intercom',
    source:
      "Made once with signPayload('sha1Verifier') of @redwoodjs/api@8.9.0 and the template of webhookProviderConfigs.intercom in @trigger.dev/core@4.8.3, a third party's description, and recorded",
    secret: 'intercom_example_client_secret',
    request: {
      headers: {
        'content-type': 'application/json',
        'x-hub-signature': 'sha1=9fcd45bb964f3c6f99e8980ed070e1fc2335e362',
      },
      body: '{"type":"notification_event","id":"notif_78c122d0-23ba-11e4-9464-79b01267cc2e","topic":"contact.user.created","app_id":"a86dr8yl","data":{"type":"notification_event_data","item":{"type":"contact","id":"530370b477ad7120001d","external_id":"25","role":"user","name":"Hoban Washburne"}}}',
    },
  },
];
