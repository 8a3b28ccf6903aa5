import type { Agent } from 'undici';
import { connectionError, peerError } from './client.ts';

export interface PatientCall {
  headers: Record<string, string>;
  body: unknown;
  signal?: AbortSignal | undefined;
  /** Until the answer begins, and between any two pieces of it that are waited for. 0: without a limit. */
  patienceMs: number;
  /** Called at a 102 ahead of the answer. */
  onProcessing?: (() => void) | undefined;
}

/** An answer whose body has not been read. */
export interface PatientReply {
  header(name: string): string | null;
  text(): Promise<string>;
  pieces: AsyncIterable<Buffer>;
}

/** Calls a peer whose answer takes as long as a plugin's handler does: `fetch` gives up after five minutes. */
export interface PatientClient {
  /** Resolves with the head of a success; throws what `Client.call` throws. */
  post(base: string, path: string, call: PatientCall): Promise<PatientReply>;
  close(): Promise<void>;
}

const PROCESSING = 102;

export function createPatientClient(peer: string): PatientClient {
  let agent: Promise<Agent> | undefined;

  function connections(): Promise<Agent> {
    agent ??= import('undici').then(({ Agent }) => new Agent());
    return agent;
  }
  return {
    async post(base, path, { headers, body, signal, patienceMs, onProcessing }) {
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
          headersTimeout: patienceMs,
          bodyTimeout: patienceMs,
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
