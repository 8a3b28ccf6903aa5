import type { LlmMessage, LlmOptions, LlmTool, LlmToolReply } from '../../contracts/index.ts';

export interface LlmRequest extends LlmOptions {
  messages: LlmMessage[];
  tools?: LlmTool[];
  toolChoice?: 'auto' | 'none' | 'required' | { name: string };
}

/** Class of a failed request. The first four classes are transient errors, which are retried. */
export type ErrorClass = 'network' | 'timeout' | 'rate_limit' | 'server' | 'auth' | 'refused' | 'malformed';

/**
 * Client of a language model endpoint. Its methods throw PAYLOAD_TOO_LARGE, UPSTREAM_TIMEOUT, UPSTREAM_UNAVAILABLE with
 * `details.errorClass`, or VALIDATION_ERROR if the endpoint rejects the request.
 */
export interface LanguageModel {
  chat(request: LlmRequest, signal: AbortSignal): Promise<LlmToolReply>;
  /**
   * Yields text as it arrives and returns the complete reply. Retries only errors that occur before the response
   * starts.
   */
  stream(request: LlmRequest, signal: AbortSignal): AsyncGenerator<string, LlmToolReply>;
}

export interface Embedder {
  embed(
    texts: string[],
    signal: AbortSignal,
  ): Promise<{ vectors: number[][]; model: string; totalTokens: number; cost: number | null }>;
}
