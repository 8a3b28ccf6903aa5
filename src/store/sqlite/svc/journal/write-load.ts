/** Minimum number of units per interval that counts as a burst. During a burst, applying is postponed. */
const BURST_UNITS = 40;

/**
 * Tells a burst from low load. Units in flight count too: a large frame takes longer to write than an interval,
 * so that written units alone would show a pause in the midst of a burst.
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

  /** Returns true when there has been a burst since the last call. */
  isBurst(): boolean {
    const units = this.#inFlight + this.#ended;
    this.#ended = 0;
    return units >= BURST_UNITS;
  }
}
