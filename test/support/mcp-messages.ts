import type { AnyJson } from './any-json.ts';
import { ADMIN_TOKEN } from './gateway.ts';

/** Headers of a message with a token. */
export const headers = (token: string, more: Record<string, string> = {}) => ({
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: `Bearer ${token}`,
  ...more,
});

export const toolCall = (name: string, input: object = {}, id = 1) => ({
  ...{ jsonrpc: '2.0', id, method: 'tools/call' },
  params: { name, arguments: input },
});

/** Sends a message to the MCP endpoint without the library. */
export const post = (url: string, body: unknown, token = ADMIN_TOKEN, more: Record<string, string> = {}) =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: headers(token, more),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

/** Returns the message of a reply, which can be a stream of one event. */
export async function messageOf(reply: Response): Promise<AnyJson> {
  const text = await reply.text();
  return JSON.parse(text.startsWith('{') ? text : /^data: (.*)$/m.exec(text)![1]!);
}
