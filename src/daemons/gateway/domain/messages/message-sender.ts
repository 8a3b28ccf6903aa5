import { DEFAULT_MESSAGE_TIMEOUT_MS } from '../../../../contracts/index.ts';
import { signedHeaders } from '../../../../kit/security/standard-webhooks.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { MessageContent } from '../../../../store/ports/index.ts';
import type { MessageClient } from '../../../outgoing/message-client.ts';
import { errorOf, errorOfStatus, excerptOf } from './attempt-text.ts';
import type { KnownEndpoint } from './endpoint-registry.ts';

export interface SentAttempt {
  startedAt: number;
  durationMs: number;
  responseStatus: number | null;
  retryAfter: string | null;
  excerpt: string | null;
  error: string | null;
}

export interface MessageSenderDeps {
  client: Pick<MessageClient, 'send'>;
  clock: Clock;
  userAgent: string;
}

/** Signs messages and sends them. @spec docs/messages.md "Verify" */
export class MessageSender {
  readonly #deps: MessageSenderDeps;

  constructor(deps: MessageSenderDeps) {
    this.#deps = deps;
  }

  /** Never rejects: a failure is part of the result. */
  async send(
    endpoint: KnownEndpoint,
    { id, body }: Pick<MessageContent, 'id' | 'body'>,
    signal?: AbortSignal,
  ): Promise<SentAttempt> {
    const { client, clock } = this.#deps;
    const startedAt = clock.now();
    const began = performance.now();
    const headers = this.#headers(endpoint, { id, body, startedAt });
    const timeoutMs = endpoint.record.timeoutMs ?? DEFAULT_MESSAGE_TIMEOUT_MS;
    try {
      const { url, record } = endpoint;
      const { publicOnly } = record;
      const reply = await client.send({
        ...{ url, headers, body, timeoutMs, publicOnly },
        ...(signal ? { signal } : {}),
      });
      return {
        ...{ startedAt, durationMs: performance.now() - began, responseStatus: reply.status },
        ...{
          retryAfter: reply.retryAfter,
          excerpt: excerptOf(reply.excerpt),
          error: errorOfStatus(reply.status),
        },
      };
    } catch (error) {
      return {
        ...{ startedAt, durationMs: performance.now() - began, responseStatus: null },
        ...{ retryAfter: null, excerpt: null, error: errorOf(error) },
      };
    }
  }

  #headers(
    { keys, record, headers }: KnownEndpoint,
    { id, body, startedAt }: { id: string; body: Uint8Array; startedAt: number },
  ): string[] {
    const usesPrevious =
      keys.previous !== null &&
      record.previousSecretExpiresAt !== null &&
      startedAt < record.previousSecretExpiresAt;
    const used = usesPrevious ? [keys.current, keys.previous!] : [keys.current];
    return [
      ...headers,
      ...['content-type', 'application/json', 'user-agent', this.#deps.userAgent],
      ...signedHeaders(used, { id, at: startedAt, body }),
    ];
  }
}
