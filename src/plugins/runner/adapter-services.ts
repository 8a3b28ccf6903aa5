import type {
  EmbeddingsAccess,
  LlmAccess,
  LlmPiece,
  LlmReply,
  PluginContextV3,
  StorageAccess,
  StoredObject,
  VectorStoreAccess,
} from '../../contracts/index.ts';
import type { PlatformCalls } from './platform-calls.ts';

type Call = (service: string, method: string, ...args: unknown[]) => Promise<never>;

/** Implements `ctx.storage`, `ctx.llm`, `ctx.embeddings` and `ctx.vectorStore` with calls to platform services. */
export function adapterServices(
  calls: PlatformCalls,
  executionId: string,
): Pick<PluginContextV3, 'storage' | 'llm' | 'embeddings' | 'vectorStore'> {
  const call: Call = (service, method, ...args) =>
    calls.call(executionId, service, method, args) as Promise<never>;
  const embeddings: EmbeddingsAccess = { embed: (texts) => call('embeddings', 'embed', texts) };
  return { storage: storage(call), llm: llm(call), embeddings, vectorStore: vectorStore(call) };
}

function storage(call: Call): StorageAccess {
  const find = async (key: string): Promise<StoredObject | undefined> =>
    ((await call('storage', 'stat', key)) as { found?: StoredObject }).found;
  return {
    async read(key) {
      const { data } = (await call('storage', 'read', key)) as { data?: string };
      return data === undefined ? undefined : new Uint8Array(Buffer.from(data, 'base64'));
    },
    async write(key, data) {
      await call('storage', 'write', key, base64Of(data));
    },
    delete: (key) => call('storage', 'delete', key),
    exists: async (key) => (await find(key)) !== undefined,
    stat: find,
    list: (options = {}) => call('storage', 'list', options),
  };
}

function base64Of(data: unknown): string {
  if (typeof data === 'string') return Buffer.from(data, 'utf8').toString('base64');
  if (ArrayBuffer.isView(data))
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
  if (data instanceof ArrayBuffer) return Buffer.from(data).toString('base64');
  throw new TypeError(
    'ctx.storage.write takes a string, a Uint8Array or an ArrayBuffer; serialize other values with JSON.stringify.',
  );
}

function llm(call: Call): LlmAccess {
  return {
    complete: (prompt, options) => call('llm', 'complete', prompt, options),
    chat: (messages, options) => call('llm', 'chat', messages, options),
    chatWithTools: (messages, options) => call('llm', 'chatWithTools', messages, options),
    async *stream(messages, options): AsyncGenerator<LlmPiece> {
      const id: number = await call('llm', 'openStream', messages, options);
      let isOver = false;
      try {
        while (!isOver) {
          const { text, reply }: { text: string; reply?: LlmReply } = await call(
            'llm',
            'nextPieces',
            id,
          ).catch((error: unknown) => {
            isOver = true;
            throw error;
          });
          isOver = reply !== undefined;
          yield { text, ...(reply ? { reply } : {}) };
        }
      } finally {
        // Closes a stream that the handler stopped reading, because an open stream would continue to cost money.
        if (!isOver) await call('llm', 'closeStream', id).catch(() => {});
      }
    },
  };
}

function vectorStore(call: Call): VectorStoreAccess {
  const numbers = (vector: ArrayLike<number>): number[] => Array.from(vector);
  return {
    upsert: async (items, options) =>
      call(
        'vectorStore',
        'upsert',
        items.map(({ vector, ...item }) => ({ ...item, vector: numbers(vector) })),
        options,
      ),
    search: async (vector, options) => call('vectorStore', 'search', numbers(vector), options),
    delete: async (ids, options) =>
      call('vectorStore', 'delete', typeof ids === 'string' ? [ids] : ids, options),
  };
}
