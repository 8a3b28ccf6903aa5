import { createBoundedCache } from '../../../../../kit/data/bounded-cache.ts';
import type { MessageContent, MessageStore } from '../../../../../store/ports/index.ts';
import { UNREAD_BYTES } from './attempt-slots.ts';

/** Size of the two maps of the cache. */
const MAX_BYTES = 16 * 1024 * 1024;
const ROW_BYTES = 300;

/** Contents of messages that wait. Endpoints share them, so a fan-out holds a body once. */
export class MessageContents {
  readonly #store: Pick<MessageStore, 'contents'>;
  readonly #cache = createBoundedCache<MessageContent>(
    MAX_BYTES,
    (_, { body }) => body.byteLength + ROW_BYTES,
  );

  /** Contents that are being read, by message. */
  readonly #reading = new Map<string, Promise<Map<string, MessageContent>>>();

  constructor(store: Pick<MessageStore, 'contents'>) {
    this.#store = store;
  }

  put(content: MessageContent): void {
    this.#cache.set(content.id, content);
  }

  held(id: string): MessageContent | undefined {
    return this.#cache.get(id);
  }

  /**
   * Reads a content that is not held, together with those of later attempts, within the bytes that the slot of the
   * attempt reserves. One statement per message would halve the rate of a backlog. Undefined if the message was pruned.
   */
  async read(id: string, later: readonly string[]): Promise<MessageContent | undefined> {
    const running = this.#reading.get(id);
    if (!running) return (await this.#readAll(id, later)).get(id);
    // The read of another attempt leaves out bodies that exceed its bytes.
    return (await running).get(id) ?? this.held(id) ?? this.read(id, []);
  }

  #readAll(id: string, later: readonly string[]): Promise<Map<string, MessageContent>> {
    const ids = [id, ...later.filter((each) => !this.held(each) && !this.#reading.has(each))];
    const reading = this.#readFrom(ids).finally(() => {
      for (const each of ids) this.#reading.delete(each);
    });
    for (const each of ids) this.#reading.set(each, reading);
    return reading;
  }

  async #readFrom(ids: readonly string[]): Promise<Map<string, MessageContent>> {
    const found = await this.#store.contents(ids, UNREAD_BYTES);
    for (const content of found) this.put(content);
    return new Map(found.map((content) => [content.id, content]));
  }
}
