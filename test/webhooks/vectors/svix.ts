import { Webhook } from 'svix';
import type { Vector, Vectors } from './vector.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER_SECRET = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
const AT = Date.UTC(2026, 5, 1);
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const BODY = '{"test": 2432232314}';

const DOCUMENTED: Vector = {
  provider: 'svix',
  source: 'https://docs.svix.com/receiving/verifying-payloads/how-manual',
  secret: 'whsec_plJ3nmyCDGBKInavdOK15jsl',
  at: 1731705121_000,
  request: {
    headers: {
      'content-type': 'application/json',
      'svix-id': 'msg_loFOjxBNrRLzqYUf',
      'svix-timestamp': '1731705121',
      'svix-signature': 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=',
    },
    body: '{"event_type":"ping","data":{"success":true}}',
  },
};

export const vectors: Vectors = async () => {
  const signed = (secret: string): string => new Webhook(secret).sign(ID, new Date(AT), BODY);
  const made: Vector[] = [signed(SECRET), `${signed(OTHER_SECRET)} ${signed(SECRET)}`].map((signature) => ({
    provider: 'svix',
    source: 'svix@2.5.0',
    secret: SECRET,
    at: AT,
    request: {
      headers: {
        'content-type': 'application/json',
        'svix-id': ID,
        'svix-timestamp': String(AT / 1000),
        'svix-signature': signature,
      },
      body: BODY,
    },
  }));
  return [DOCUMENTED, ...made];
};
