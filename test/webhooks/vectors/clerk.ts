import { Webhook } from 'svix';
import { clerk } from '../../../src/webhooks/providers/clerk.ts';
import type { Vectors } from './vector.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const AT = 1_763_900_000_000;

export const vectors: Vectors = async () => {
  const { headers, body } = clerk.sample;
  const signature = new Webhook(SECRET).sign(ID, new Date(AT), body);
  return [
    {
      provider: 'clerk',
      source: 'svix@2.5.0 Webhook.sign, the service that sends the webhooks of Clerk',
      secret: SECRET,
      at: AT,
      request: {
        headers: {
          ...headers,
          'svix-id': ID,
          'svix-timestamp': String(AT / 1000),
          'svix-signature': signature,
        },
        body,
      },
    },
  ];
};
