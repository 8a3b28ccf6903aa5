import type { Vectors } from './vector.ts';

const SOURCE = 'twitter-autohook@1.7.2: test/signature.js';
/** The secret of that test is too short to be provisioned. HMAC pads its key with zero bytes, so this key is the same one. */
const SECRET = 'test'.padEnd(8, '\0');

export const vectors: Vectors = async () => [
  {
    provider: 'x',
    source: SOURCE,
    secret: SECRET,
    request: {
      headers: {
        'content-type': 'application/json',
        'x-twitter-webhooks-signature': 'sha256=YWHphPn/JFq43jkF0y4/w8R/SelmLjvpunhVFY8JhlI=',
      },
      body: '{"test_number":1,"test_string":"two"}',
    },
  },
  {
    provider: 'x',
    source: SOURCE,
    secret: SECRET,
    format: 'form',
    request: {
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'x-twitter-webhooks-signature': 'sha256=25Cu3iwbbiqBTwQRzcKJZwisjf736V2Q8UaTlkfLSoc=',
      },
      body: 'test=1&other_test=2',
    },
  },
];
