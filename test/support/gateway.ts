import { createHmac } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { type CallInput, type Endpoint, provisionWebhook, type ReplyOf } from '../../src/contracts/index.ts';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { createClient } from '../../src/http/index.ts';
import type { AnyJson } from './any-json.ts';
import { startTestDaemon, type TestDaemon, type TestDaemonOptions } from './daemon.ts';

const WEBHOOK_PROJECT = fileURLToPath(new URL('../fixtures/projects/webhooks', import.meta.url));

/** A static token of namespace `default` whose host is an admin, and one that is not. */
export const ADMIN_TOKEN = 'test-admin-token';
export const MEMBER_TOKEN = 'test-member-token';
export const OTHER_TOKEN = 'test-other-namespace-token';

const STATIC_TOKENS = {
  [ADMIN_TOKEN]: { hostId: 'operator', namespaceId: 'default' },
  [MEMBER_TOKEN]: { hostId: 'member', namespaceId: 'default' },
  [OTHER_TOKEN]: { hostId: 'other', namespaceId: 'other' },
};

export type TestGateway = Omit<TestDaemon<unknown>, 'call'> & {
  /** Calls an endpoint with a Bearer token, the admin's unless told. */
  call<E extends Endpoint>(
    endpoint: E,
    input?: CallInput<E>,
    token?: string,
    headers?: Record<string, string>,
  ): Promise<ReplyOf<E>>;
};

/** The real gateway with the project of `test/fixtures/projects/webhooks`, unless told otherwise. */
export async function startGateway(options: TestDaemonOptions = {}): Promise<TestGateway> {
  const config = options.config ?? {};
  const daemon = await startTestDaemon(gateway, {
    projectDir: WEBHOOK_PROJECT,
    ...options,
    config: {
      ...config,
      gateway: { staticTokens: STATIC_TOKENS, ...(config.gateway as object | undefined) },
    },
  });
  const client = createClient({ url: daemon.url, peer: 'gateway' });
  return {
    ...daemon,
    call: (endpoint, input, token = ADMIN_TOKEN, headers = {}) =>
      client.call(endpoint, input, { headers: { authorization: `Bearer ${token}`, ...headers } }),
  };
}

export interface Delivery {
  event: string;
  pluginId?: string;
  instance?: string;
  payload?: unknown;
  /** The bytes as sent; default: the payload as JSON. */
  body?: string | Buffer;
  /** Signs with it, in the way of the event's declaration. */
  secret?: string;
  namespace?: string | null;
  headers?: Record<string, string>;
  query?: string;
}

export interface DeliveryReply {
  status: number;
  headers: Headers;
  body: AnyJson;
}

/** Delivers to the fixture plugin, signed as its declaration asks. */
export async function deliver(target: Pick<TestGateway, 'url'>, delivery: Delivery): Promise<DeliveryReply> {
  const { pluginId = '@acme/orders', event, instance, secret, namespace = 'default' } = delivery;
  const body = delivery.body ?? JSON.stringify(delivery.payload ?? {});
  const path = [pluginId, event, ...(instance === undefined ? [] : [instance])]
    .map(encodeURIComponent)
    .join('/');
  const response = await fetch(`${target.url}/webhooks/${path}${delivery.query ?? ''}`, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      ...(namespace === null ? {} : { 'x-svc-namespace': namespace }),
      ...(secret === undefined ? {} : signature(event, secret, body)),
      ...delivery.headers,
    },
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

function signature(event: string, secret: string, body: string | Buffer): Record<string, string> {
  if (event === 'checked') return { 'x-custom': secret };
  if (event !== 'created' && event !== 'later') return { 'x-token': secret };
  return { 'x-signature': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}` };
}

/** Provisions an event of the fixture plugin and returns its secret. */
export async function provision(
  target: TestGateway,
  event: string,
  instanceId?: string,
  token?: string,
): Promise<string> {
  const body = { pluginId: '@acme/orders', event, ...(instanceId === undefined ? {} : { instanceId }) };
  return (await target.call(provisionWebhook, { body }, token)).secret;
}

/** How often the fixture's handler ran. */
export function handlerRuns(target: Pick<TestGateway, 'logs'>): number {
  return target.logs.lines.filter((line) => line.message === 'handled').length;
}
