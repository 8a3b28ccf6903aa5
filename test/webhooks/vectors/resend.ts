import { expect } from 'vitest';
import { resend } from '../../../src/webhooks/providers/resend.ts';
import type { Vectors } from './vector.ts';

// Resend sends with Svix, whose library signs. Resend's own library accepts the delivery before the test uses it.
export const vectors: Vectors = async () => {
  const { Resend } = await import('resend');
  const { Webhook } = await import('svix');
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const id = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W';
  const at = Date.now();
  const timestamp = String(Math.floor(at / 1000));
  const { body } = resend.sample;
  const signature = new Webhook(secret).sign(id, new Date(at), body);
  const headers = { id, timestamp, signature };
  expect(
    new Resend('re_123').webhooks.verify({ payload: body, headers, webhookSecret: secret }),
  ).toMatchObject({ type: 'email.sent' });
  return [
    {
      provider: 'resend',
      source: 'svix@2.5.0, Webhook.sign, verified by resend@6.38.0',
      secret,
      at,
      request: {
        headers: {
          'content-type': 'application/json',
          'svix-id': id,
          'svix-timestamp': timestamp,
          'svix-signature': signature,
        },
        body,
      },
    },
  ];
};
