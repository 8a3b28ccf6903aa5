import { isRecord } from '../../../kit/data/is-record.ts';
import type { Random } from '../../../kit/security/random.ts';
import { callerKey } from './authenticated-call.ts';
import type { McpCall } from './platform-calls.ts';

const PREFIX = 'svc-request.';

interface OpenRequest {
  owner: string;
  settle(message: Record<string, unknown>): void;
}

/**
 * Requests of plugin commands that clients of the revision 2025-11-25 have not answered yet. An answer comes as a message
 * of its own, to this process. It must come from the caller and the session that were asked.
 */
export class StreamedRequests {
  readonly #random: Pick<Random, 'secret'>;
  readonly #open = new Map<string, OpenRequest>();

  constructor(random: Pick<Random, 'secret'>) {
    this.#random = random;
  }

  /** Sends a request and returns the message that answers it. Rejects when `signal` aborts. */
  async ask(
    call: McpCall,
    send: (id: string) => Promise<void>,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> {
    signal.throwIfAborted();
    const id = PREFIX + this.#random.secret(16);
    const answered = Promise.withResolvers<Record<string, unknown>>();
    const abort = (): void => answered.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#open.set(id, { owner: ownerOf(call), settle: answered.resolve });
    try {
      const [message] = await Promise.all([answered.promise, send(id)]);
      return message;
    } finally {
      signal.removeEventListener('abort', abort);
      this.#open.delete(id);
    }
  }

  /** Takes a message that answers a request of this kind. Returns false for other messages. */
  take(message: unknown, call: McpCall): boolean {
    if (!isRecord(message) || message.method !== undefined) return false;
    const { id } = message;
    if (typeof id !== 'string' || !id.startsWith(PREFIX)) return false;
    const open = this.#open.get(id);
    if (open?.owner === ownerOf(call)) open.settle(message);
    return true;
  }
}

const ownerOf = (call: McpCall): string => callerKey(call, call.connection);
