import type { Provider } from './provider.ts';

export const googlePubsub: Provider = {
  id: 'google-pubsub',
  name: 'Google Cloud Pub/Sub',
  sources: [
    'https://docs.cloud.google.com/pubsub/docs/authenticate-push-subscriptions',
    'https://docs.cloud.google.com/pubsub/docs/push',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'jwt',
      header: 'authorization',
      prefix: 'Bearer ',
      algorithms: ['RS256'],
      jwksUrl: 'https://www.googleapis.com/oauth2/v3/certs',
      issuer: ['https://accounts.google.com', 'accounts.google.com'],
      audience: 'secret',
      claims: { email_verified: true },
      toleranceSeconds: 60,
    },
  ],
  secretFrom: 'platform',
  secretHelp: 'Enable authentication of the push subscription and enter the secret as its audience.',
  protects: { body: false, url: false, time: true, sender: true },
  deliveryId: { field: 'message.messageId' },
  ackAfterMs: 8000,
  pitfalls: [
    'Every Google Cloud customer can get a token for every audience. Only the secret as audience proves the sender, so do ' +
      'not use a URL or another value that can be guessed.',
    'A token is valid for up to one hour and Pub/Sub reuses it, so that a recorded delivery can be repeated that long.',
    'The published bytes are the base64 text in message.data.',
    'Leave payload unwrapping off: an unwrapped message has no message.messageId in its body.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"message":{"attributes":{"key":"value"},"data":"SGVsbG8gQ2xvdWQgUHViL1N1YiEgSGVyZSBpcyBteSBtZXNzYWdlIQ==",' +
      '"messageId":"2070443601311540","message_id":"2070443601311540","publishTime":"2021-02-26T19:13:55.749Z",' +
      '"publish_time":"2021-02-26T19:13:55.749Z"},"subscription":"projects/myproject/subscriptions/mysubscription"}',
  },
};
