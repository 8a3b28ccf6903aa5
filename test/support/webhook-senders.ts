import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import { getDelivery, listDeliveries, type WebhookDeliveryDetails } from '../../src/contracts/index.ts';
import type { TestDaemonOptions } from './daemon.ts';
import { type Delivery, type DeliveryReply, deliver, startGateway, type TestGateway } from './gateway.ts';

export const SENDERS = fileURLToPath(new URL('../fixtures/projects/senders', import.meta.url));

/** The gateway with the plugin `senders`: every kind of sender, and every kind of inbox. */
export function startSenders(options: TestDaemonOptions = {}): Promise<TestGateway> {
  // One process that stays, as it counts tries in its memory.
  const config = { execution: { worker: { maxProcesses: 1, idleMs: 10 ** 10 } }, ...options.config };
  return startGateway({ projectDir: SENDERS, ...options, config });
}

/** Delivers to an event of the plugin, with its secret as the header `x-token`. */
export function send(
  gateway: TestGateway,
  event: string,
  secret: string,
  payload: unknown,
  more: Partial<Delivery> = {},
): Promise<DeliveryReply> {
  return deliver(gateway, { pluginId: 'senders', event, secret, payload, ...more });
}

export async function secretOf(gateway: TestGateway, event: string, token?: string): Promise<string> {
  const { provisionWebhook } = await import('../../src/contracts/index.ts');
  return (await gateway.call(provisionWebhook, { body: { pluginId: 'senders', event } as never }, token))
    .secret;
}

export function details(
  gateway: TestGateway,
  webhookId: string,
  token?: string,
): Promise<WebhookDeliveryDetails> {
  return gateway.call(getDelivery, { params: { webhookId } }, token);
}

/** `status event` of all deliveries, newest first. */
export async function statuses(gateway: TestGateway, query: object = {}): Promise<string[]> {
  const { items } = await gateway.call(listDeliveries, { query });
  return items.map(({ status, event }) => `${status} ${event}`);
}

/** What the handler logged: `handled` when it began, `done` when it ended well, by the payload's `n`. */
export function runsOf(gateway: Pick<TestGateway, 'logs'>, message: 'handled' | 'done'): unknown[] {
  return gateway.logs.lines
    .filter((line) => line.message === message)
    .map((line) => (line.meta as { run: unknown }).run);
}

/** Tries until it passes: machines that test are busy, and what is waited for comes when it comes. */
export function eventually(check: () => unknown): Promise<unknown> {
  return vi.waitFor(check, { timeout: 15_000, interval: 50 });
}
