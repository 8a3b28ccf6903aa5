export const LOOPBACK = '127.0.0.1';

/**
 * Address of one process. No other process listens on this address, even if several processes share the service's port.
 */
export interface MemberAddress {
  host: string;
  port: number;
  /** Whether several processes of the node share the service's port. */
  sharesPort: boolean;
}

export interface BoundAddress {
  port: number;
  /** The service's URL, `http://<host>:<port>`. */
  url: string;
  own: MemberAddress;
}

/** Address on which the service listens in this process. Available only after `bind`. */
export class ListenAddress {
  #bound: BoundAddress | undefined;

  /** The bound port, even if the config sets port 0. Throws before the server listens. */
  get port(): number {
    return this.#required().port;
  }

  /** The service's URL, `http://<host>:<port>`. Throws before the server listens. */
  get url(): string {
    return this.#required().url;
  }

  /** Address of this process for other members of the store. Throws before the server listens. */
  get own(): MemberAddress {
    return this.#required().own;
  }

  bind(bound: BoundAddress): void {
    this.#bound = bound;
  }

  #required(): BoundAddress {
    if (this.#bound === undefined) throw new Error('The port is known once the server listens.');
    return this.#bound;
  }
}
