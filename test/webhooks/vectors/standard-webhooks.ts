import { Webhook } from 'standardwebhooks';
import type { Vectors } from './vector.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER_SECRET = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
const AT = Date.UTC(2026, 5, 1);
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const BODY = '{"test": 2432232314}';

export const vectors: Vectors = async () => {
  const signed = (secret: string): string => new Webhook(secret).sign(ID, new Date(AT), BODY);
  return [signed(SECRET), `${signed(OTHER_SECRET)} ${signed(SECRET)}`].map((signature) => ({
    provider: 'standard-webhooks',
    source: 'standardwebhooks@1.1.1',
    secret: SECRET,
    at: AT,
    request: {
      headers: {
        'content-type': 'application/json',
        'webhook-id': ID,
        'webhook-timestamp': String(AT / 1000),
        'webhook-signature': signature,
      },
      body: BODY,
    },
  }));
};
