import { validateSignature } from '@line/bot-sdk';
import { expect } from 'vitest';
import type { Vectors } from './vector.ts';

const SECRET = 'test_secret';
const BODY = '{"hello":"world"}';
const SIGNATURE = 't7Hn4ZDHqs6e+wdvI5TyQIvzie0DmMUmuXEBqyyE/tM=';

export const vectors: Vectors = async () => {
  expect(validateSignature(BODY, SECRET, SIGNATURE)).toBe(true);
  return [
    {
      provider: 'line',
      source: 'line-bot-sdk-nodejs: test/validate-signature.spec.ts, verified by @line/bot-sdk@11.2.0',
      secret: SECRET,
      request: { headers: { 'content-type': 'application/json', 'x-line-signature': SIGNATURE }, body: BODY },
    },
  ];
};
