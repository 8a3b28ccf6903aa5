import { getDelivery, listDeliveries, provisionWebhook } from '../../../../src/contracts/index.ts';
import type { TestDaemonOptions } from '../../../support/daemon.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';

export const INBOUND_PROJECT = new URL('../../../fixtures/projects/receive', import.meta.url).pathname;

/** The real gateway with the plugin `inbound`, whose webhooks take all formats and handshakes. */
export const startInbound = (options: TestDaemonOptions = {}): Promise<TestGateway> =>
  startGateway({ projectDir: INBOUND_PROJECT, ...options });

/** Provisions an event of the plugin `inbound` and returns its secret. */
export async function provisionInbound(gateway: TestGateway, event: string): Promise<string> {
  const body = { pluginId: 'inbound', event, namespaceInUrl: true };
  return (await gateway.call(provisionWebhook, { body } as never)).secret;
}

export interface Sent {
  method?: string;
  secret?: string;
  body?: string | Buffer | FormData;
  headers?: Record<string, string>;
  /** Query without the namespace. */
  query?: string;
}

/** Sends a request to an event of the plugin `inbound`. */
export function send(
  gateway: Pick<TestGateway, 'url'>,
  event: string,
  { method = 'POST', secret, body, headers = {}, query = '' }: Sent,
): Promise<Response> {
  return fetch(`${gateway.url}/webhooks/inbound/${event}?namespace=default${query}`, {
    method,
    headers: { ...(secret === undefined ? {} : { 'x-token': secret }), ...headers },
    ...(body === undefined
      ? {}
      : { body: (Buffer.isBuffer(body) ? new Uint8Array(body) : body) as FormData }),
  });
}

export async function latestDelivery(gateway: TestGateway) {
  const { items } = await gateway.call(listDeliveries, { query: { limit: 1 } } as never);
  return gateway.call(getDelivery, { params: { webhookId: items[0]!.webhookId } } as never);
}
