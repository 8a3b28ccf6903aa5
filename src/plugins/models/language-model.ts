import type { LlmMessage, LlmOptions, LlmTool, LlmToolReply } from '../../contracts/index.ts';

export interface LlmRequest extends LlmOptions {
  messages: LlmMessage[];
  tools?: LlmTool[];
  toolChoice?: 'auto' | 'none' | 'required' | { name: string };
}

/** What went wrong with a remote call, by whether trying again may help: the first four may, the others do not. */
export type ErrorClass = 'network' | 'timeout' | 'rate_limit' | 'server' | 'auth' | 'refused' | 'malformed';

/**
 * A language model behind an endpoint. Throws VALIDATION_ERROR for what the endpoint refuses as wrong, PAYLOAD_TOO_LARGE,
 * UPSTREAM_TIMEOUT, and UPSTREAM_UNAVAILABLE with `details.errorClass`.
 */
export interface LanguageModel {
  chat(request: LlmRequest, signal: AbortSignal): Promise<LlmToolReply>;
  /** Pieces of text as they come; returns the whole. Nothing is tried again once a piece was handed on. */
  stream(request: LlmRequest, signal: AbortSignal): AsyncGenerator<string, LlmToolReply>;
}

export interface Embedder {
  embed(
    texts: string[],
    signal: AbortSignal,
  ): Promise<{ vectors: number[][]; model: string; totalTokens: number; cost: number | null }>;
}
