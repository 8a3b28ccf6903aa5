/** Address on which the service listens in this process. Known only after `bind`. */
export class ListenAddress {
  #bound: { port: number; url: string } | undefined;

  /** The bound port, also if the config sets port 0. Throws before the server listens. */
  get port(): number {
    return this.#required().port;
  }

  /** The service's URL, `http://<host>:<port>`. Throws before the server listens. */
  get url(): string {
    return this.#required().url;
  }

  bind(bound: { port: number; url: string }): void {
    this.#bound = bound;
  }

  #required(): { port: number; url: string } {
    if (this.#bound === undefined) throw new Error('The port is known once the server listens.');
    return this.#bound;
  }
}
