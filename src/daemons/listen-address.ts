/** The address of the service in this process. */
export class ListenAddress {
  #port: number | undefined;

  /** The bound port, also if the config sets port 0. Throws before the server listens. */
  get port(): number {
    if (this.#port === undefined) throw new Error('The port is known once the server listens.');
    return this.#port;
  }

  /** Sets the port that the server is bound to. */
  bind(port: number): void {
    this.#port = port;
  }
}
