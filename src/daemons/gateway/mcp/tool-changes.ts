import { seconds } from '../../../kit/time/duration.ts';

const INTERVAL_MS = seconds(2);

/** Polls a list of tools while clients listen, and reports changes. */
export class ToolChanges {
  readonly #list: () => Promise<unknown>;
  readonly #report: () => void;
  readonly #listeners = new Set<object>();
  #timer: NodeJS.Timeout | undefined;
  #known: string | undefined;
  #isReading = false;

  constructor(list: () => Promise<unknown>, report: () => void) {
    this.#list = list;
    this.#report = report;
  }

  /** Polls until the returned function is called, and as long as other clients listen. */
  watch(): () => void {
    const listener = {};
    this.#listeners.add(listener);
    this.#timer ??= setInterval(() => void this.#read(), INTERVAL_MS).unref();
    if (this.#listeners.size === 1) void this.#read();
    return () => this.#remove(listener);
  }

  close(): void {
    for (const listener of this.#listeners) this.#remove(listener);
  }

  #remove(listener: object): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#known = undefined;
  }

  /** The first read after the start of the timer only sets what is known. */
  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const found = JSON.stringify(await this.#list());
      const isChanged = this.#known !== undefined && found !== this.#known;
      if (this.#listeners.size > 0) this.#known = found;
      if (isChanged) this.#report();
    } finally {
      this.#isReading = false;
    }
  }
}
