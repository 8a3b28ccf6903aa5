import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const x: Provider = {
  id: 'x',
  name: 'X (Twitter)',
  sources: ['https://docs.x.com/x-api/webhooks/introduction', 'https://docs.x.com/x-api/webhooks/quickstart'],
  checkedOn: '2026-11-23',
  auth: [
    bodySignature({
      header: 'x-twitter-webhooks-signature',
      prefix: 'sha256=',
      encoding: 'base64',
    }),
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the consumer secret (API key secret) of the app in the X developer console.',
  protects: { body: true, url: false, time: false, sender: true },
  events: [
    'tweet_create_events',
    'tweet_delete_events',
    'favorite_events',
    'follow_events',
    'unfollow_events',
    'block_events',
    'unblock_events',
    'mute_events',
    'unmute_events',
    'user_event',
    'direct_message_events',
    'direct_message_indicate_typing_events',
    'direct_message_mark_read_events',
  ],
  handshakes: [
    // X does not sign this request. The gateway computes no HMAC of a text that could be the body of a delivery.
    {
      method: 'GET',
      when: [{ at: { query: 'crc_token' } }],
      isAuthenticated: false,
      reply: {
        status: 200,
        headers: {},
        json: {
          response_token: { hmac: { of: { query: 'crc_token' }, encoding: 'base64', prefix: 'sha256=' } },
        },
      },
    },
  ],
  accepted: { status: 200, body: '' },
  ackAfterMs: 9000,
  pitfalls: [
    'The secret is the consumer secret, not the bearer token or the access token.',
    'X accepts no URL with a port.',
    'X checks the URL every hour, within three seconds, and stops deliveries after a failure.',
    'The kind of an event is the name of a field, not a value.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"for_user_id":"2244994945","favorite_events":[{"id":"a7ba59eab0bfcba386f7acedac279542","timestamp_ms":1514764800000}]}',
  },
};
