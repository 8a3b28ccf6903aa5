/** Token bucket. It holds at most the tokens of one second, and at least one. Times are in ms. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #capacity: number;
  #tokens: number;
  #at: number;

  constructor(perSecond: number, now: number) {
    this.#perSecond = perSecond;
    this.#capacity = Math.max(1, perSecond);
    this.#tokens = this.#capacity;
    this.#at = now;
  }

  /** Returns the ms until a token is available, or 0. */
  waitMs(now: number): number {
    this.#fill(now);
    // Rounding errors must not make a caller wait for less than a millisecond, again and again.
    return this.#tokens >= 1 - 1e-9 ? 0 : Math.ceil(((1 - this.#tokens) / this.#perSecond) * 1000);
  }

  take(now: number): void {
    this.#fill(now);
    this.#tokens--;
  }

  /** Returns the token of a request that was not made. */
  giveBack(): void {
    this.#tokens = Math.min(this.#capacity, this.#tokens + 1);
  }

  #fill(now: number): void {
    this.#tokens = Math.min(
      this.#capacity,
      this.#tokens + (Math.max(0, now - this.#at) / 1000) * this.#perSecond,
    );
    this.#at = now;
  }
}
