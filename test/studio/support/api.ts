import type { AnyJson } from '../../support/any-json.ts';
import type { Studio } from './studio.ts';

export type Api = (method: string, path: string, body?: object) => Promise<AnyJson>;

/** Calls of the API with a token of the operator, in a namespace. Throws for answers that are errors. */
export async function apiOf(studio: Studio, namespaceId = 'default'): Promise<Api> {
  const { token } = await studio.svc('tokens', 'mint', 'tester', '--namespace', namespaceId);
  return async (method, path, body) => {
    const response = await fetch(studio.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const reply = await response.json();
    if (!response.ok) throw new Error(JSON.stringify(reply));
    return reply;
  };
}
