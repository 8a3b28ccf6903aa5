import type { LlmMessage, LlmOptions, LlmTool, LlmToolReply } from '../../contracts/index.ts';

export interface LlmRequest extends LlmOptions {
  messages: LlmMessage[];
  tools?: LlmTool[];
  toolChoice?: 'auto' | 'none' | 'required' | { name: string };
}

/** Class of a failed request. The first four classes are transient errors, which are retried. */
export type ErrorClass = 'network' | 'timeout' | 'rate_limit' | 'server' | 'auth' | 'refused' | 'malformed';

/**
 * Client of a language model endpoint. Throws VALIDATION_ERROR for a request that the endpoint rejects,
 * PAYLOAD_TOO_LARGE, UPSTREAM_TIMEOUT, or UPSTREAM_UNAVAILABLE with `details.errorClass`.
 */
export interface LanguageModel {
  chat(request: LlmRequest, signal: AbortSignal): Promise<LlmToolReply>;
  /** Yields text as it arrives and returns the complete reply. Retries only until the response starts. */
  stream(request: LlmRequest, signal: AbortSignal): AsyncGenerator<string, LlmToolReply>;
}

export interface Embedder {
  embed(
    texts: string[],
    signal: AbortSignal,
  ): Promise<{ vectors: number[][]; model: string; totalTokens: number; cost: number | null }>;
}
