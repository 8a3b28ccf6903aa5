import twilio from 'twilio/lib/webhooks/webhooks.js';
import { expect } from 'vitest';
import type { Vector, Vectors } from './vector.ts';

const { getExpectedBodyHash, getExpectedTwilioSignature, validateRequest, validateRequestWithBody } = twilio;
const SOURCE = 'twilio@6.2.0';
const TOKEN = '2b4f5a6c7d8e9f0a1b2c3d4e5f6a7b8c';
const FORM = 'application/x-www-form-urlencoded';
const DOCUMENTED_URL = 'https://mycompany.com/myapp.php?foo=1&bar=2';
const CALL = {
  CallSid: 'CA1234567890ABCDE',
  Caller: '+14158675309',
  Digits: '1234',
  From: '+14158675309',
  To: '+18005551212',
};

/** A form as Twilio posts it. Several values of one name are several pairs. */
const formOf = (params: Record<string, string | string[]>): string =>
  new URLSearchParams(
    Object.entries(params).flatMap(([name, value]) => [value].flat().map((one) => [name, one])),
  ).toString();

function form(url: string, params: Record<string, string | string[]>, calledUrl = url): Vector {
  const signature = getExpectedTwilioSignature(TOKEN, url, params);
  expect(validateRequest(TOKEN, signature, calledUrl, params)).toBe(true);
  return {
    provider: 'twilio',
    source: SOURCE,
    secret: TOKEN,
    request: {
      url: calledUrl,
      headers: { 'content-type': FORM, 'x-twilio-signature': signature },
      body: formOf(params),
    },
  };
}

function json(): Vector {
  const body = '{"property": "value", "boolean": true}';
  const url = `https://mycompany.com/myapp.php?bodySHA256=${getExpectedBodyHash(body)}`;
  const signature = getExpectedTwilioSignature(TOKEN, url, {});
  expect(validateRequestWithBody(TOKEN, signature, url, body)).toBe(true);
  return {
    provider: 'twilio',
    source: SOURCE,
    secret: TOKEN,
    request: { url, headers: { 'content-type': 'application/json', 'x-twilio-signature': signature }, body },
  };
}

export const vectors: Vectors = async (target) => {
  const documented = 'RSOYDt4T1cUTdK1PDd93/VVr8B8=';
  expect(validateRequest('12345', documented, DOCUMENTED_URL, CALL)).toBe(true);
  return [
    {
      provider: 'twilio',
      source: 'https://www.twilio.com/docs/usage/security, verified by twilio@6.2.0',
      secret: '12345',
      request: {
        url: DOCUMENTED_URL,
        headers: { 'content-type': FORM, 'x-twilio-signature': documented },
        body: formOf(CALL),
      },
    },
    form(target.url, CALL),
    form('https://hooks.example.com/webhooks/sms', { Body: 'Grüße & = ?', From: '+491511', NumMedia: '0' }),
    form('https://hooks.example.com/webhooks/sms', { MessagingBinding: ['b', 'a', 'b'], Empty: '' }),
    // Twilio signs the URL with a port, and calls it without one.
    form('https://hooks.example.com:443/webhooks/sms', CALL, 'https://hooks.example.com/webhooks/sms'),
    json(),
  ];
};
