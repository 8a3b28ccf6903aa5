/** Minimum number of writes per interval that counts as a burst. Applying is postponed during a burst. */
const BURST_UNITS = 40;

/**
 * Detects bursts of writes. Writes in flight count too, because a large frame takes longer to write than an interval.
 */
export class WriteLoad {
  #inFlight = 0;
  #ended = 0;

  begin(): void {
    this.#inFlight++;
  }

  end(units: number): void {
    this.#inFlight -= units;
    this.#ended += units;
  }

  /** Returns whether there has been a burst since the last call. */
  isBurst(): boolean {
    const units = this.#inFlight + this.#ended;
    this.#ended = 0;
    return units >= BURST_UNITS;
  }
}
