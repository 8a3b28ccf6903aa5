import {
  type CallInput,
  type Endpoint,
  exchangeToken,
  type ReplyOf,
} from '../../../../src/contracts/index.ts';
import { createClient } from '../../../../src/http/index.ts';
import { TEST_OPERATOR } from '../../../support/daemon.ts';
import type { TestGateway } from './start-gateway.ts';

export type Caller = <E extends Endpoint>(endpoint: E, input?: CallInput<E>) => Promise<ReplyOf<E>>;

/** Calls the gateway with this token. */
export function asBearer(gateway: { url: string }, token: string): Caller {
  const client = createClient({
    url: gateway.url,
    peer: 'gateway',
    headers: () => ({ authorization: `Bearer ${token}` }),
  });
  return (endpoint, input) => client.call(endpoint, input);
}

/** Calls the gateway as its operator, an administrator. */
export async function asOperator(gateway: TestGateway): Promise<Caller> {
  const { clientId, clientSecret } = TEST_OPERATOR;
  const { accessToken } = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  return asBearer(gateway, accessToken);
}

/** Whether a token gets a call through to the upstream: its status. */
export async function statusWith(gateway: { url: string }, token: string): Promise<number> {
  const response = await fetch(`${gateway.url}/api/v1/anything`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return response.status;
}
