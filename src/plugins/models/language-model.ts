import type { LlmMessage, LlmOptions, LlmTool, LlmToolReply } from '../../contracts/index.ts';

export interface LlmRequest extends LlmOptions {
  messages: LlmMessage[];
  tools?: LlmTool[];
  toolChoice?: 'auto' | 'none' | 'required' | { name: string };
}

/** Class of a remote error: the first four are transient, the others are not. */
export type ErrorClass = 'network' | 'timeout' | 'rate_limit' | 'server' | 'auth' | 'refused' | 'malformed';

/**
 * A language model endpoint. Throws VALIDATION_ERROR for a rejected request, PAYLOAD_TOO_LARGE,
 * UPSTREAM_TIMEOUT, and UPSTREAM_UNAVAILABLE with `details.errorClass`.
 */
export interface LanguageModel {
  chat(request: LlmRequest, signal: AbortSignal): Promise<LlmToolReply>;
  /** Yields text chunks as they arrive and returns the whole reply. Does not retry after the first chunk. */
  stream(request: LlmRequest, signal: AbortSignal): AsyncGenerator<string, LlmToolReply>;
}

export interface Embedder {
  embed(
    texts: string[],
    signal: AbortSignal,
  ): Promise<{ vectors: number[][]; model: string; totalTokens: number; cost: number | null }>;
}
