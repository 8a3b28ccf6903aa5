import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const line: Provider = {
  id: 'line',
  name: 'LINE',
  sources: [
    'https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/',
    'https://developers.line.biz/en/docs/messaging-api/receiving-messages/',
  ],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'x-line-signature', encoding: 'base64' })],
  secretFrom: 'sender',
  secretHelp: 'Copy the channel secret of Basic settings in the LINE Developers Console.',
  protects: { body: true, url: false, time: false, sender: true },
  eventType: { field: 'events.0.type' },
  events: [
    'message',
    'unsend',
    'follow',
    'unfollow',
    'join',
    'leave',
    'memberJoined',
    'memberLeft',
    'postback',
    'videoPlayComplete',
    'beacon',
    'accountLink',
    'membership',
  ],
  accepted: { status: 200, body: '' },
  ackAfterMs: 1500,
  pitfalls: [
    'A delivery has a list of events. It is empty when LINE verifies the URL, and has several events at times.',
    'With webhook redelivery, an event can repeat: compare webhookEventId in the handler.',
    'LINE discloses no addresses, so do not restrict them.',
  ],
  sample: {
    headers: { 'content-type': 'application/json; charset=utf-8', 'user-agent': 'LineBotWebhook/2.0' },
    body: '{"destination":"xxxxxxxxxx","events":[{"type":"message","message":{"type":"text","id":"14353798921116","text":"Hello, world"},"timestamp":1625665242211,"source":{"type":"user","userId":"U80696558e1aa831..."},"replyToken":"757913772c4646b784d4b7ce46d12671","mode":"active","webhookEventId":"01FZ74A0TDDPYRVKNK77XKC3ZR","deliveryContext":{"isRedelivery":false}}]}',
  },
};
