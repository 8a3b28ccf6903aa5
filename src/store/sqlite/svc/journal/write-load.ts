/** Minimum number of writes per interval that counts as a burst. During a burst, journal frames are applied later. */
const BURST_UNITS = 40;

/**
 * Detects bursts of writes. Writes in flight are also counted, because writing a large frame takes longer than an
 * interval.
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
