import type { GatewayCalls } from './gateway-calls.ts';

/**
 * Minimum interval between two notices, in ms of wall-clock time. The interval bounds the number of requests under
 * load.
 */
const INTERVAL_MS = 20;

/**
 * Notifies the scheduling gateway that new deliveries exist. The scheduling gateway also polls, so that a lost notice
 * only causes a delay.
 */
export class LeaderNotice {
  readonly #calls: Pick<GatewayCalls, 'notify'>;
  #url: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isSending = false;
  #isNeeded = false;
  #isClosed = false;

  constructor(calls: Pick<GatewayCalls, 'notify'>) {
    this.#calls = calls;
  }

  /** Sets the URL of the scheduler, or null while no other gateway schedules. */
  setUrl(url: string | null): void {
    this.#url = url;
  }

  /** Sends a notice soon. Calls until then share the notice. */
  send(): void {
    this.#isNeeded = true;
    if (this.#timer !== undefined || this.#isSending || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#send();
    }, INTERVAL_MS).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #send(): Promise<void> {
    this.#isNeeded = false;
    if (this.#url === null) return;
    this.#isSending = true;
    // A failed notice needs no handling, because the scheduler polls.
    await this.#calls.notify(this.#url).catch(() => {});
    this.#isSending = false;
    if (this.#isNeeded) this.send();
  }
}
