import { isRecord } from '../../../kit/data/is-record.ts';
import { callerKey } from './authenticated-call.ts';
import type { McpCall } from './platform-calls.ts';

type RequestId = string | number;

/**
 * Calls and waits in flight, so that a message of a client of the revision 2025-11-25 can cancel them. The number of a
 * request is unique only in the session of its client: without a session, a call cannot be cancelled.
 */
export class CallsInFlight {
  readonly #controls = new Map<string, AbortController>();

  /** Runs a call whose signal also aborts when the client cancels it. */
  async run<Result>(
    call: McpCall,
    requestId: RequestId,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const key = keyOf(call, requestId);
    if (key === undefined || this.#controls.has(key)) return work(call.signal);
    const control = new AbortController();
    this.#controls.set(key, control);
    try {
      return await work(AbortSignal.any([call.signal, control.signal]));
    } finally {
      this.#controls.delete(key);
    }
  }

  /** Cancels the call that the message names, if it is one of the same caller and session. */
  cancelBy(message: unknown, call: McpCall): void {
    if (!isRecord(message) || message.method !== 'notifications/cancelled' || !isRecord(message.params))
      return;
    const { requestId } = message.params;
    if (typeof requestId !== 'string' && typeof requestId !== 'number') return;
    const key = keyOf(call, requestId);
    if (key !== undefined) this.#controls.get(key)?.abort(new Error('The client has cancelled the call.'));
  }
}

function keyOf(call: McpCall, requestId: RequestId): string | undefined {
  const { connection } = call;
  return connection === null ? undefined : callerKey(call, connection, requestId);
}
