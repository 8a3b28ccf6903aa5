import { verifyKey } from 'discord-interactions';
import { expect } from 'vitest';
import type { Vectors } from './vector.ts';

const PUBLIC_KEY = '82d8d97fe0641e68a1b0b11220f05e9ea0539a0cdc002119d4a9e9e025aba1e9';
const SECONDS = '1616343571';
const BODY = '{"type" : 1}';
const SIGNATURE =
  'c41278a0cf22bf8f3061756063cd7ef548a3df23d0ffc5496209aa0ad4d9593343801bf11e099f41bca1afcac2c70734eebafede3dec7aac1caa5d8fade5af0c';

export const vectors: Vectors = async () => {
  expect(await verifyKey(BODY, SIGNATURE, SECONDS, PUBLIC_KEY)).toBe(true);
  return [
    {
      provider: 'discord',
      source:
        'https://github.com/showengineer/rusty-interaction (src/tests.rs), verified by discord-interactions@4.4.0',
      secret: PUBLIC_KEY,
      at: Number(SECONDS) * 1000,
      request: {
        headers: {
          'content-type': 'application/json',
          'x-signature-ed25519': SIGNATURE,
          'x-signature-timestamp': SECONDS,
        },
        body: BODY,
      },
    },
  ];
};
