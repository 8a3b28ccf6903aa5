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
  /** Whether the endpoint must not receive the message at all. */
  isForeign: boolean;
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

  /**
   * Never rejects: a failure is part of the result. A message is not sent to an endpoint that was moved to another
   * application, whose users can change its URL.
   */
  async send(
    endpoint: KnownEndpoint,
    { id, body, application }: Pick<MessageContent, 'id' | 'body' | 'application'>,
    signal?: AbortSignal,
  ): Promise<SentAttempt> {
    if (application !== endpoint.record.application) return foreign(this.#deps.clock.now());
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
          isForeign: false,
        },
      };
    } catch (error) {
      return {
        ...{ startedAt, durationMs: performance.now() - began, responseStatus: null },
        ...{ retryAfter: null, excerpt: null, error: errorOf(error), isForeign: false },
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

function foreign(startedAt: number): SentAttempt {
  return {
    ...{ startedAt, durationMs: 0, responseStatus: null, retryAfter: null, excerpt: null, isForeign: true },
    error: 'The endpoint was moved to another application',
  };
}
