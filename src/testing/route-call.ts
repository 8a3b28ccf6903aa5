import { serviceHeaders } from '../http/index.ts';
import type { RouteAnswer, RouteOptions } from './call-types.ts';

export async function callRoute<Body>(
  url: string,
  method: string,
  { body, query = {}, headers = {}, tenantId = 'default', user = 'tester' }: RouteOptions,
  internalSecret: string,
): Promise<RouteAnswer<Body>> {
  const target = new URL(url);
  for (const [name, value] of Object.entries(query)) target.searchParams.append(name, String(value));
  const caller = { namespaceId: tenantId, ...(user === null ? {} : { hostId: user }) };
  const response = await fetch(target, {
    method,
    headers: {
      ...serviceHeaders(internalSecret, caller),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text !== '' ? JSON.parse(text) : text,
  };
}
