// Types of `ctx.storage`, `ctx.llm`, `ctx.embeddings`, `ctx.vectorStore`.
// @spec docs/plugins.md "Storage, models and vectors"

/** Metadata of a stored object. */
export interface StoredObject {
  key: string;
  bytes: number;
  /** Time of the last change in epoch milliseconds. */
  modifiedAt: number;
}

/**
 * Objects by key, separate for each plugin and tenant. A key is a path such as `reports/2030/may.pdf`. Keys have at
 * most 512 characters, no leading slash, no backslash, and no empty, `.` or `..` component. Writes are atomic. Calls
 * reject with PERMISSION_DENIED, VALIDATION_ERROR (invalid key), ADAPTER_NOT_CONFIGURED, PAYLOAD_TOO_LARGE or
 * QUOTA_EXCEEDED.
 */
export interface StorageAccess {
  /** Returns the content of an object, or undefined if the object does not exist. */
  read(key: string): Promise<Uint8Array | undefined>;
  /** Writes an object. Text is written as UTF-8. */
  write(key: string, data: Uint8Array | ArrayBuffer | string): Promise<void>;
  /** Deletes an object. Resolves to true if the object existed. */
  delete(key: string): Promise<boolean>;
  exists(key: string): Promise<boolean>;
  /** Returns the metadata of an object, or undefined if the object does not exist. */
  stat(key: string): Promise<StoredObject | undefined>;
  /**
   * Returns objects by key prefix, in the order of their keys. A page contains 100 objects by default, and at most
   * 1,000.
   */
  list(options?: {
    prefix?: string;
    cursor?: string;
    limit?: number;
  }): Promise<{ items: StoredObject[]; nextCursor: string | null }>;
}

/** A message of a conversation with a language model. */
export type LlmMessage =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string; toolCalls?: LlmToolCall[] }
  /** Result of a tool call. `toolCallId` is the `id` of the tool call. */
  | { role: 'tool'; content: string; toolCallId: string };

export interface LlmTool {
  name: string;
  description?: string;
  /** JSON Schema of the tool's arguments. */
  parameters: Record<string, unknown>;
}

export interface LlmToolCall {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

export interface LlmOptions {
  /** Name of a model in `adapters.llm.models`. The default is `default`. */
  tier?: string;
  temperature?: number;
  /** Maximum number of generated tokens, limited by `adapters.llm.maxOutputTokens`. */
  maxTokens?: number;
  stop?: string[];
  /** Requests a single JSON object as the reply. */
  json?: boolean;
}

export interface LlmUsage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
}

export interface LlmReply {
  text: string;
  /**
   * Reason why generation ended: `stop`, `length`, `tool_calls`, `content_filter`, or another value returned by the
   * model endpoint.
   */
  finishReason: string;
  model: string;
  tier: string;
  usage: LlmUsage;
  /** Cost in US dollars, computed from `adapters.llm.prices`. Null if no price is configured for the model. */
  cost: number | null;
}

export interface LlmToolReply extends LlmReply {
  toolCalls: LlmToolCall[];
}

/** A chunk of a streamed reply. The last chunk contains the complete `reply`. */
export interface LlmPiece {
  text: string;
  reply?: LlmReply;
}

/**
 * Language model configured in `adapters.llm`. Transient failures are retried. The `details.errorClass` of
 * UPSTREAM_UNAVAILABLE is `network`, `rate_limit`, `server`, `auth` or `malformed`.
 */
export interface LlmAccess {
  complete(prompt: string, options?: LlmOptions): Promise<LlmReply>;
  chat(messages: LlmMessage[], options?: LlmOptions): Promise<LlmReply>;
  chatWithTools(
    messages: LlmMessage[],
    options: LlmOptions & { tools: LlmTool[]; toolChoice?: 'auto' | 'none' | 'required' | { name: string } },
  ): Promise<LlmToolReply>;
  /** Yields chunks as they arrive. Breaking out of the loop ends the call. */
  stream(messages: string | LlmMessage[], options?: LlmOptions): AsyncIterable<LlmPiece>;
}

export interface EmbeddingsReply {
  /** The vectors of the texts, in the order of the texts. */
  vectors: number[][];
  model: string;
  totalTokens: number;
  cost: number | null;
}

export interface EmbeddingsAccess {
  /** Embeds at most 256 texts. Rejects with the same errors as `ctx.llm`. */
  embed(texts: string | string[]): Promise<EmbeddingsReply>;
}

/** Values that a search can filter by. */
export type VectorMetadata = Record<string, string | number | boolean | null>;

export interface VectorItem {
  id: string;
  vector: number[] | Float32Array;
  metadata?: VectorMetadata;
}

export interface VectorMatch {
  id: string;
  /** Cosine similarity: 1 for the same direction, 0 for unrelated vectors, and -1 for opposite directions. */
  score: number;
  metadata: VectorMetadata;
}

/**
 * Vectors by collection, separate for each plugin and tenant. The first vector of a collection sets its number of
 * dimensions, at most 4,096. Throws VALIDATION_ERROR if a vector has another number of dimensions.
 */
export interface VectorStoreAccess {
  /** Inserts or replaces items atomically. A call accepts at most 500 items and 8 MiB of JSON. */
  upsert(items: VectorItem[], options?: { collection?: string }): Promise<{ written: number }>;
  /**
   * Returns the vectors nearest to the query, nearest first. The default number of results is 10, and the maximum is
   * 1,000. `filter` lists required metadata values.
   */
  search(
    vector: number[] | Float32Array,
    options?: { collection?: string; limit?: number; minScore?: number; filter?: VectorMetadata },
  ): Promise<VectorMatch[]>;
  /** Deletes vectors and returns how many were deleted. */
  delete(ids: string | string[], options?: { collection?: string }): Promise<number>;
}
