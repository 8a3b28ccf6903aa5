/** Bytes of the messages of attempts. A message that several attempts send is in memory once, so it counts once. */
export class BodyBytes {
  readonly #messages = new Map<string, { attempts: number; bytes: number }>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(messageId: string, bytes: number): void {
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
    if (!known || --known.attempts > 0) return;
    this.#messages.delete(messageId);
    this.#total -= known.bytes;
  }
}
