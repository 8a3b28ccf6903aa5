import type { ToRunner } from '../../runner/protocol.ts';
import type { Call } from './call.ts';

interface AheadCall {
  call: Call;
  isRecalled: boolean;
}

/** Calls that were sent to a busy process. As far as this service knows, none of their code has run. */
export class AheadCalls {
  readonly #send: (frame: ToRunner) => void;
  readonly #entries = new Map<string, AheadCall>();

  constructor(send: (frame: ToRunner) => void) {
    this.#send = send;
  }

  get size(): number {
    return this.#entries.size;
  }

  get calls(): Call[] {
    return Array.from(this.#entries.values(), ({ call }) => call);
  }

  add(call: Call): void {
    this.#entries.set(call.request.executionId, { call, isRecalled: false });
  }

  /** Removes a call that was returned. Returns undefined for calls that were not recalled, and other ids. */
  removeRecalled(executionId: unknown): Call | undefined {
    return this.#entries.get(executionId as string)?.isRecalled ? this.remove(executionId) : undefined;
  }

  /** Removes a call that has started. Returns undefined for other ids. */
  remove(executionId: unknown): Call | undefined {
    const entry = this.#entries.get(executionId as string);
    this.#entries.delete(executionId as string);
    return entry?.call;
  }

  /** Requests a call back. The process returns the call, unless it has started. */
  recall({ request: { executionId } }: Call): void {
    const entry = this.#entries.get(executionId);
    if (!entry || entry.isRecalled) return;
    entry.isRecalled = true;
    this.#send({ type: 'recall', executionId });
  }
}
