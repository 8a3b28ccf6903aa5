/**
 * Number of attempts, and bytes of their messages. A message that several attempts send is in memory once, so its bytes
 * count once.
 */
export class BodyBytes {
  readonly #messages = new Map<string, { attempts: number; bytes: number }>();
  #attempts = 0;
  #total = 0;

  get attempts(): number {
    return this.#attempts;
  }

  get total(): number {
    return this.#total;
  }

  add(messageId: string, bytes: number): void {
    this.#attempts++;
    const known = this.#messages.get(messageId);
    if (known) {
      known.attempts++;
      return;
    }
    this.#messages.set(messageId, { attempts: 1, bytes });
    this.#total += bytes;
  }

  /** Corrects the size of a message. */
  resize(messageId: string, bytes: number): void {
    const known = this.#messages.get(messageId);
    if (!known) return;
    this.#total += bytes - known.bytes;
    known.bytes = bytes;
  }

  remove(messageId: string): void {
    const known = this.#messages.get(messageId);
    if (!known) return;
    this.#attempts--;
    if (--known.attempts > 0) return;
    this.#messages.delete(messageId);
    this.#total -= known.bytes;
  }
}
