import verification from '@slack/bolt/dist/receivers/verify-request.js';
import { expect } from 'vitest';
import type { Vectors } from './vector.ts';

const SECRET = '8f742231b10e8888abcd99yyyzzz85a5';
const SECONDS = 1531420618;
const SIGNATURE = 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503';
const BODY =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';

export const vectors: Vectors = async () => {
  const at = SECONDS * 1000;
  expect(
    verification.isValidSlackRequest({
      signingSecret: SECRET,
      body: BODY,
      headers: { 'x-slack-signature': SIGNATURE, 'x-slack-request-timestamp': SECONDS },
      nowMilliseconds: at,
    }),
  ).toBe(true);
  return [
    {
      provider: 'slack',
      source:
        'https://docs.slack.dev/authentication/verifying-requests-from-slack, verified by @slack/bolt@5.1.0',
      secret: SECRET,
      at,
      format: 'form',
      request: {
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'x-slack-request-timestamp': String(SECONDS),
          'x-slack-signature': SIGNATURE,
        },
        body: BODY,
      },
    },
  ];
};
