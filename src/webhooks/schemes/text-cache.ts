import { minutes, seconds } from '../../kit/time/duration.ts';
import { fetchBounded } from './bounded-fetch.ts';

const TEXT_TTL_MS = minutes(10);
/** Time after a failure in which the URL is not fetched again. */
const FAILURE_TTL_MS = seconds(5);
const MAX_TEXTS = 256;

interface Entry {
  text: Promise<string>;
  untilMs: number;
}

/** Caches texts of the web, such as certificates. Concurrent requests share one fetch. */
export class TextCache {
  readonly #entries = new Map<string, Entry>();
  readonly #fetch: (url: string) => Promise<string>;

  constructor(fetch: (url: string) => Promise<string> = fetchBounded) {
    this.#fetch = fetch;
  }

  get(url: string, nowMs: number): Promise<string> {
    const known = this.#entries.get(url);
    if (known && nowMs < known.untilMs) return known.text;
    if (this.#entries.size >= MAX_TEXTS) this.#entries.delete(this.#entries.keys().next().value!);
    const entry: Entry = { text: this.#fetch(url), untilMs: nowMs + TEXT_TTL_MS };
    this.#entries.set(url, entry);
    entry.text.catch(() => {
      entry.untilMs = nowMs + FAILURE_TTL_MS;
    });
    return entry.text;
  }

  delete(url: string): void {
    this.#entries.delete(url);
  }
}
