import type { Client } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { serverSentEvents } from '../../src/kit/streams/server-sent-events.ts';
import type { AnyJson } from './any-json.ts';
import { ADMIN_TOKEN } from './gateway.ts';
import type { ConnectOptions } from './mcp.ts';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const AnyResult = z.looseObject({});

/** Options of a client of the revision 2025-11-25 whose person gives these answers, one for each question. */
export function answering(answers: AnyJson[], asked: AnyJson[] = []): ConnectOptions {
  return {
    capabilities: { elicitation: { form: {} } },
    prepare: (client) =>
      client.setRequestHandler('elicitation/create', async ({ params }) => {
        asked.push(params);
        return answers.shift() ?? { action: 'cancel' };
      }),
  };
}

/** Sends a request that the client has no method for. */
export function request(client: Client, method: string, params: object, options?: object): Promise<AnyJson> {
  return client.request({ method, params: { ...params } } as never, AnyResult, options as never);
}

/** Calls a tool as a task of the revision 2025-11-25, and returns the task. */
export async function startTask(
  client: Client,
  name: string,
  input: object = {},
  ttl?: number,
): Promise<AnyJson> {
  const task = ttl === undefined ? {} : { ttl };
  return (await request(client, 'tools/call', { name, arguments: { ...input }, task })).task;
}

export interface ModernClient {
  /** Returns the result. Rejects with the JSON-RPC error as `cause`. */
  request(method: string, params?: object): Promise<AnyJson>;
}

/**
 * Returns a client of the revision 2026-07-28. The official client refuses results of the kind `task`, so this one sends
 * the messages itself.
 */
export function modernClient(
  url: string,
  token = ADMIN_TOKEN,
  capabilities: object = { elicitation: {}, extensions: { [EXTENSION]: {} } },
): ModernClient {
  let id = 0;
  return {
    async request(method, params = {}) {
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
        'io.modelcontextprotocol/clientCapabilities': capabilities,
      };
      const { name, taskId } = params as { name?: string; taskId?: string };
      const response = await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${token}`,
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': method,
          ...(name || taskId ? { 'mcp-name': (name ?? taskId)! } : {}),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params: { ...params, _meta } }),
      });
      const message = await messageOf(response);
      if (message.error) throw new Error(JSON.stringify(message.error), { cause: message.error });
      return message.result;
    },
  };
}

async function messageOf(response: Response): Promise<AnyJson> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response.json();
  for await (const { data } of serverSentEvents(response.body!)) {
    const message = data ? JSON.parse(data) : {};
    if ('result' in message || 'error' in message) return message;
  }
  throw new Error('The stream ended without a result.');
}
