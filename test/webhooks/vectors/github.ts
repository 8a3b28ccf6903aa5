import { sign, verify } from '@octokit/webhooks-methods';
import { expect } from 'vitest';
import type { Vectors } from './vector.ts';

const SECRET = "It's a Secret to Everybody";
const DOCUMENTED = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';

export const vectors: Vectors = async () => {
  const ping = '{"zen":"Keep it logically awesome.","hook_id":1}';
  const form = new URLSearchParams({ payload: '{"ref":"refs/heads/main"}' }).toString();
  expect(await verify(SECRET, 'Hello, World!', DOCUMENTED)).toBe(true);
  return [
    {
      provider: 'github',
      source: '@octokit/webhooks-methods@6.0.0',
      secret: SECRET,
      request: {
        headers: {
          'content-type': 'application/json',
          'x-github-event': 'ping',
          'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
          'x-hub-signature-256': await sign(SECRET, ping),
        },
        body: ping,
      },
    },
    {
      provider: 'github',
      source: '@octokit/webhooks-methods@6.0.0',
      secret: SECRET,
      format: 'form',
      request: {
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'x-github-event': 'push',
          'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0959',
          'x-hub-signature-256': await sign(SECRET, form),
        },
        body: form,
      },
    },
    {
      provider: 'github',
      source: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
      secret: SECRET,
      format: 'raw',
      request: {
        headers: {
          'content-type': 'application/json',
          'x-github-event': 'ping',
          'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0960',
          'x-hub-signature-256': DOCUMENTED,
        },
        body: 'Hello, World!',
      },
    },
  ];
};
