import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => [
  {
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
  },
];
