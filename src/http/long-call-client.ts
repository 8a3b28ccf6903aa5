import type { Agent } from 'undici';
import { connectionError, peerError } from './client.ts';

export interface LongCall {
  headers: Record<string, string>;
  body: unknown;
  signal?: AbortSignal | undefined;
  /** Timeout for the response headers and between two chunks of the body, in ms. 0 disables the timeout. */
  idleTimeoutMs: number;
  /** Callback that is called for each 102 (Processing) interim response. */
  onProcessing?: (() => void) | undefined;
}

export interface LongCallReply {
  header(name: string): string | null;
  text(): Promise<string>;
  pieces: AsyncIterable<Buffer>;
}

/**
 * Client for calls that can last hours, such as calls of plugin handlers. `fetch` would time out after five minutes.
 */
export interface LongCallClient {
  /**
   * Sends a POST request and resolves when the headers of a successful response arrive. Rejects with the same errors as
   * `Client.call`.
   */
  post(base: string, path: string, call: LongCall): Promise<LongCallReply>;
  close(): Promise<void>;
}

const PROCESSING = 102;

export function createLongCallClient(peer: string): LongCallClient {
  let agent: Promise<Agent> | undefined;

  function connections(): Promise<Agent> {
    agent ??= import('undici').then(({ Agent }) => new Agent());
    return agent;
  }
  return {
    async post(base, path, { headers, body, signal, idleTimeoutMs, onProcessing }) {
      const client = await connections();
      const failed = (error: unknown): never => {
        throw connectionError(error, peer, base);
      };
      const { statusCode, ...reply } = await client
        .request({
          origin: base,
          path,
          method: 'POST',
          headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
          headersTimeout: idleTimeoutMs,
          bodyTimeout: idleTimeoutMs,
          ...(signal ? { signal } : {}),
          onInfo: ({ statusCode: status }) => {
            if (status === PROCESSING) onProcessing?.();
          },
        })
        .catch(failed);
      const header = (name: string): string | null => reply.headers[name]?.toString() ?? null;
      const text = (): Promise<string> => reply.body.text().catch(failed);
      if (statusCode < 400) return { header, text, pieces: reply.body };
      throw peerError({ status: statusCode, headers: { get: header } }, await text(), peer);
    },
    async close() {
      await (await agent)?.destroy();
    },
  };
}
