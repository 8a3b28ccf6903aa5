import twilio from 'twilio/lib/webhooks/webhooks.js';
import { expect, test } from 'vitest';
import { verifyTwilio } from '../../../src/webhooks/built-in/twilio.ts';
import { signedRequest } from '../../support/signed-request.ts';

const TOKEN = '2b4f5a6c7d8e9f0a1b2c3d4e5f6a7b8c';
const FORM = 'application/x-www-form-urlencoded';
const tools = { nowMs: 0, fetchText: () => Promise.reject(new Error('Nothing to fetch.')) };

/** Verifies a delivery that Twilio's library signed for `signedUrl`. */
function verified(given: {
  signedUrl: string;
  params?: Record<string, string>;
  url?: string;
  type?: string;
  body?: string;
}) {
  const { signedUrl, params = {}, url = signedUrl, type = FORM, body = '' } = given;
  const signature = twilio.getExpectedTwilioSignature(TOKEN, signedUrl, params);
  const request = signedRequest({
    url,
    rawHeaders: ['content-type', type, 'x-twilio-signature', signature],
    body: Buffer.from(body),
  });
  return verifyTwilio(request, TOKEN, tools);
}

const URLS = [
  'https://hooks.example.com/sms',
  'https://hooks.example.com:443/sms',
  'https://hooks.example.com:8443/sms?a=1',
  'http://hooks.example.com/sms?name=O%27Hara',
  "http://hooks.example.com/sms?name=O'Hara",
  'https://user:pass@hooks.example.com/sms',
  'https://[2001:db8::1]:8443/sms',
  'https://hooks.example.com/sms?url=https://example.com:99/',
];

test.each(URLS.flatMap((signedUrl) => URLS.map((url) => [signedUrl, url] as const)))(
  'the URL %s is accepted for %s exactly as by the library of Twilio',
  async (signedUrl, url) => {
    const signature = twilio.getExpectedTwilioSignature(TOKEN, signedUrl, {});
    const expected = twilio.validateRequest(TOKEN, signature, url, {});
    expect(await verified({ signedUrl, url })).toBe(expected);
  },
);

test('a body that the signature does not cover is refused', async () => {
  const signedUrl = 'https://hooks.example.com/sms';
  const type = 'application/json';
  expect(await verified({ signedUrl, type, body: '{"Body":"forged"}' })).toBe('body_not_form');
});

test('a JSON body must have the hash of the URL', async () => {
  const body = '{"Body":"Hi"}';
  const signedUrl = `https://hooks.example.com/sms?bodySHA256=${twilio.getExpectedBodyHash(body)}`;
  const type = 'application/json';
  expect(await verified({ signedUrl, type, body })).toBe(true);
  expect(await verified({ signedUrl, type, body: `${body} ` })).toBe('body_digest');
});

test('a form is not accepted with the hash of another body', async () => {
  const signedUrl = `https://hooks.example.com/sms?bodySHA256=${twilio.getExpectedBodyHash('{}')}`;
  expect(await verified({ signedUrl, body: 'Body=forged' })).toBe('body_digest');
});
