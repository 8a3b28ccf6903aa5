import type { IncomingHttpHeaders } from 'node:http';
import type { Caller } from '../../contracts/index.ts';
import type { Random } from '../../kit/security/random.ts';

const HEADER = 'x-svc-inner-call';

/**
 * Identifies calls that the gateway makes to its own endpoints for a caller whom it has already authenticated. Tickets
 * are random, valid once, and never leave the process.
 */
export class InnerCalls {
  readonly #random: Random;
  readonly #callers = new Map<string, Caller>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Returns the header of one call by `caller`. */
  headersFor(caller: Caller): Record<string, string> {
    const ticket = this.#random.secret(32);
    this.#callers.set(ticket, caller);
    return { [HEADER]: ticket };
  }

  /** Returns the caller of an inner call, or undefined for any other request. */
  take(headers: IncomingHttpHeaders): Caller | undefined {
    const ticket = headers[HEADER];
    if (typeof ticket !== 'string') return undefined;
    const caller = this.#callers.get(ticket);
    this.#callers.delete(ticket);
    return caller;
  }
}
