import { createHmac, randomUUID } from 'node:crypto';
import { generateLoad, type LoadReport } from '../load.ts';
import type { Webhook } from './nodes.ts';

/** A GitHub-like payload of 2 KB. */
const PAYLOAD = JSON.stringify({
  action: 'opened',
  issue: { number: 1, title: 'It is slow', body: 'x'.repeat(1750) },
  repository: { full_name: 'octo/hello', private: false },
  sender: { login: 'octocat', id: 1 },
});

/** Returns a function that returns the next signed delivery, each with its own id. */
export function signedDeliveries({ path, secret }: Omit<Webhook, 'event'>): () => string {
  const signature = createHmac('sha256', secret).update(PAYLOAD).digest('hex');
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-svc-namespace: default\r\n` +
    `x-github-event: issues\r\nx-hub-signature-256: sha256=${signature}\r\ncontent-length: ${PAYLOAD.length}\r\n`;
  const stem = randomUUID();
  let n = 0;
  return () => `${head}x-github-delivery: ${stem}-${n++}\r\n\r\n${PAYLOAD}`;
}

export interface DeliveryLoad {
  port: number;
  webhook: Omit<Webhook, 'event'>;
  connections: number;
  durationMs: number;
}

/** Sends deliveries; throws unless each was accepted. */
export async function deliver({ webhook, ...load }: DeliveryLoad): Promise<LoadReport> {
  const report = await generateLoad({ ...load, request: signedDeliveries(webhook) });
  const isAccepted = Object.keys(report.statuses).join() === '202';
  if (!isAccepted) throw new Error(`${webhook.path} answered ${JSON.stringify(report.statuses)}`);
  return report;
}
