import { Webhook } from 'standardwebhooks';
import type { Vectors } from './vector.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const body = '{"type":"contact.created","data":{"id":"1f81eb52"}}';
const at = Date.UTC(2026, 0, 1);

export const vectors: Vectors = async () => [
  {
    provider: 'standard-webhooks',
    source: 'standardwebhooks 1.1.1, Webhook.sign',
    secret,
    at,
    request: {
      headers: {
        'content-type': 'application/json',
        'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        'webhook-timestamp': String(at / 1000),
        'webhook-signature': new Webhook(secret).sign('msg_p5jXN8AQM9LWM0D4loKWxJek', new Date(at), body),
      },
      body,
    },
  },
];
