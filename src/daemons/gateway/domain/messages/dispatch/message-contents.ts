import { createBoundedCache } from '../../../../../kit/data/bounded-cache.ts';
import type { MessageContent, MessageStore } from '../../../../../store/ports/index.ts';

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

  constructor(store: Pick<MessageStore, 'contents'>) {
    this.#store = store;
  }

  put(content: MessageContent): void {
    this.#cache.set(content.id, content);
  }

  held(id: string): MessageContent | undefined {
    return this.#cache.get(id);
  }

  /** Reads a content that is not held. Undefined if the message was pruned. */
  async read(id: string): Promise<MessageContent | undefined> {
    const [content] = await this.#store.contents([id]);
    if (content) this.put(content);
    return content;
  }

  /** Reads contents ahead of their attempts. */
  async prefetch(ids: readonly string[]): Promise<void> {
    const missing = ids.filter((id) => this.#cache.get(id) === undefined);
    if (missing.length === 0) return;
    for (const content of await this.#store.contents(missing)) this.put(content);
  }
}
