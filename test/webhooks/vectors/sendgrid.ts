import { expect } from 'vitest';
import type { Vectors } from './vector.ts';

const PUBLIC_KEY =
  'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==';
const SIGNATURE =
  'MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=';
const TIMESTAMP = '1600112502';
const BODY =
  '[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]\r\n';

export const vectors: Vectors = async () => {
  const { EventWebhook } = await import('@sendgrid/eventwebhook');
  const webhook = new EventWebhook();
  const key = webhook.convertPublicKeyToECDSA(PUBLIC_KEY);
  expect(webhook.verifySignature(key, BODY, SIGNATURE, TIMESTAMP)).toBe(true);
  return [
    {
      provider: 'sendgrid',
      source: '@sendgrid/eventwebhook@8.0.0, src/eventwebhook.spec.js',
      secret: PUBLIC_KEY,
      at: Number(TIMESTAMP) * 1000,
      request: {
        headers: {
          'content-type': 'application/json',
          'x-twilio-email-event-webhook-signature': SIGNATURE,
          'x-twilio-email-event-webhook-timestamp': TIMESTAMP,
        },
        body: BODY,
      },
    },
  ];
};
