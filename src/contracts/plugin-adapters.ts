/** What handlers find as `ctx.storage`, `ctx.llm`, `ctx.embeddings` and `ctx.vectorStore`. @spec docs/plugins.md "Storage, models and vectors" */

/** What is known of a stored object without reading it. */
export interface StoredObject {
  key: string;
  bytes: number;
  /** Epoch ms. */
  modifiedAt: number;
}

/**
 * Bytes by key, of one plugin and one tenant. A key is a path without a leading slash, such as `reports/2030/may.pdf`:
 * 512 characters at most, no empty, `.` or `..` part, no backslash. A write is whole or not at all. Calls reject with
 * PERMISSION_DENIED (not in the manifest), ADAPTER_NOT_CONFIGURED, VALIDATION_ERROR (the key), PAYLOAD_TOO_LARGE and
 * QUOTA_EXCEEDED.
 */
export interface StorageAccess {
  /** Undefined when there is no such object. */
  read(key: string): Promise<Uint8Array | undefined>;
  /** Text is written as UTF-8. */
  write(key: string, data: Uint8Array | ArrayBuffer | string): Promise<void>;
  /** True when there was something to delete. */
  delete(key: string): Promise<boolean>;
  exists(key: string): Promise<boolean>;
  /** Undefined when there is no such object. */
  stat(key: string): Promise<StoredObject | undefined>;
  /** Objects by key prefix, in key order; at most 1,000 a page, 100 unless told. */
  list(options?: {
    prefix?: string;
    cursor?: string;
    limit?: number;
  }): Promise<{ items: StoredObject[]; nextCursor: string | null }>;
}

/** One turn of a conversation. */
export type LlmMessage =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string; toolCalls?: LlmToolCall[] }
  /** What a tool answered; `toolCallId` is that of the call. */
  | { role: 'tool'; content: string; toolCallId: string };

export interface LlmTool {
  name: string;
  description?: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
}

export interface LlmToolCall {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

export interface LlmOptions {
  /** One of `adapters.llm.models`; `default` unless told. */
  tier?: string;
  temperature?: number;
  /** At most `adapters.llm.maxOutputTokens`. */
  maxTokens?: number;
  stop?: string[];
  /** The answer is one JSON object. */
  json?: boolean;
}

export interface LlmUsage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
}

export interface LlmReply {
  text: string;
  /** Why it ended: `stop`, `length`, `tool_calls`, `content_filter`, or what else the endpoint says. */
  finishReason: string;
  model: string;
  tier: string;
  usage: LlmUsage;
  /** US dollars by `adapters.llm.prices`; null when the model has no price there. */
  cost: number | null;
}

export interface LlmToolReply extends LlmReply {
  toolCalls: LlmToolCall[];
}

/** A piece of a streamed answer; the last one carries `reply`, the whole. */
export interface LlmPiece {
  text: string;
  reply?: LlmReply;
}

/**
 * The language model that `adapters.llm` names. Calls reject with PERMISSION_DENIED, ADAPTER_NOT_CONFIGURED,
 * VALIDATION_ERROR (also what the endpoint refuses as wrong), UPSTREAM_TIMEOUT, PAYLOAD_TOO_LARGE and UPSTREAM_UNAVAILABLE,
 * whose `details.errorClass` says why: `network`, `rate_limit`, `server`, `auth`, `malformed`. What may pass is tried again first.
 */
export interface LlmAccess {
  complete(prompt: string, options?: LlmOptions): Promise<LlmReply>;
  chat(messages: LlmMessage[], options?: LlmOptions): Promise<LlmReply>;
  chatWithTools(
    messages: LlmMessage[],
    options: LlmOptions & { tools: LlmTool[]; toolChoice?: 'auto' | 'none' | 'required' | { name: string } },
  ): Promise<LlmToolReply>;
  /** Pieces as they come. Leaving the loop ends the call. */
  stream(messages: string | LlmMessage[], options?: LlmOptions): AsyncIterable<LlmPiece>;
}

export interface EmbeddingsReply {
  /** One for each text, in their order. */
  vectors: number[][];
  model: string;
  totalTokens: number;
  cost: number | null;
}

export interface EmbeddingsAccess {
  /** At most 256 texts. Rejects as `ctx.llm` does. */
  embed(texts: string | string[]): Promise<EmbeddingsReply>;
}

/** Values that a search can ask for. */
export type VectorMetadata = Record<string, string | number | boolean | null>;

export interface VectorItem {
  id: string;
  vector: number[] | Float32Array;
  metadata?: VectorMetadata;
}

export interface VectorMatch {
  id: string;
  /** Cosine similarity: 1 is the same direction, 0 unrelated, -1 the opposite. */
  score: number;
  metadata: VectorMetadata;
}

/**
 * Vectors of one plugin and one tenant, in collections (`default` unless told). All vectors of a collection have the
 * dimensions of its first one, at most 4,096; others are VALIDATION_ERROR. Also rejects with PERMISSION_DENIED,
 * ADAPTER_NOT_CONFIGURED and QUOTA_EXCEEDED.
 */
export interface VectorStoreAccess {
  /** Writes or replaces, all or nothing; at most 500 at a time, and 8 MiB as JSON. */
  upsert(items: VectorItem[], options?: { collection?: string }): Promise<{ written: number }>;
  /** The nearest first; 10 unless told, at most 1,000. `filter` names values that the metadata must have. */
  search(
    vector: number[] | Float32Array,
    options?: { collection?: string; limit?: number; minScore?: number; filter?: VectorMetadata },
  ): Promise<VectorMatch[]>;
  /** How many there were. */
  delete(ids: string | string[], options?: { collection?: string }): Promise<number>;
}
