import { z } from 'zod';
import {
  DEFAULT_TIER,
  type EmbeddingsConfig,
  type LlmConfig,
  type LlmToolReply,
} from '../../contracts/index.ts';
import { type Environment, resolveSecret } from '../../kit/config/secret-ref.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Random } from '../../kit/security/random.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { chatBody, type ReadReply, readChunk, readReply, usageOf } from './chat-wire.ts';
import { ModelEndpoint } from './endpoint.ts';
import type { Embedder, LanguageModel, LlmRequest } from './language-model.ts';
import { costOf } from './prices.ts';
import { RemoteFailure } from './remote-error.ts';

export interface ModelDeps {
  env: Environment;
  /** API key that was resolved before, such as a stored secret. */
  apiKey?: string | undefined;
  clock: Clock;
  random: Random;
}

/**
 * Creates a client for OpenAI's chat completion API. Throws ADAPTER_NOT_CONFIGURED if the environment variable of the
 * API key is not set.
 */
export function openAiModel(config: LlmConfig, deps: ModelDeps): LanguageModel {
  const endpoint = endpointOf('llm', config, deps);

  function target({ tier = DEFAULT_TIER, maxTokens }: LlmRequest) {
    if (!Object.hasOwn(config.models, tier)) {
      throw new PlatformError(
        'VALIDATION_ERROR',
        `There is no tier "${tier}"; adapters.llm.models has ${Object.keys(config.models).join(', ')}.`,
        { details: { tier, tiers: Object.keys(config.models) } },
      );
    }
    const tokens = Math.min(maxTokens ?? config.maxOutputTokens, config.maxOutputTokens);
    return { tier, model: config.models[tier]!, limit: { field: config.maxTokensField, tokens } };
  }
  function whole(read: ReadReply, tier: string, model: string): LlmToolReply {
    const { text, finishReason, usage, toolCalls } = read;
    const answered = read.model ?? model;
    const cost = costOf(config.prices, [model, answered], usage);
    return { text, finishReason, model: answered, tier, usage, cost, toolCalls };
  }

  return {
    async chat(request, signal) {
      const { tier, model, limit } = target(request);
      const body = chatBody(request, model, limit);
      const read = await endpoint.whole(signal, (client) => client.chat.completions.create(body), readReply);
      return whole(read, tier, model);
    },
    async *stream(request, signal) {
      const { tier, model, limit } = target(request);
      const body = {
        ...chatBody(request, model, limit),
        stream: true as const,
        stream_options: { include_usage: true },
      };
      const read: ReadReply = {
        text: '',
        finishReason: '',
        model: undefined,
        usage: usageOf(null),
        toolCalls: [],
      };
      const chunks = endpoint.stream(signal, (client) => client.chat.completions.create(body), readChunk);
      for await (const chunk of chunks) {
        read.text += chunk.text;
        read.finishReason = chunk.finishReason ?? read.finishReason;
        read.model = chunk.model ?? read.model;
        read.usage = chunk.usage ?? read.usage;
        if (chunk.text !== '') yield chunk.text;
      }
      // Some servers omit the final `[DONE]`, so an incomplete stream is detected by its missing finish reason.
      if (read.finishReason === '')
        throw endpoint.invalidResponse(new RemoteFailure('network', 'its stream ended early'));
      return whole(read, tier, model);
    },
  };
}

const EmbeddingsAnswer = z.object({
  model: z.string().optional(),
  data: z.array(z.object({ index: z.number().int().min(0), embedding: z.array(z.number()) })),
  usage: z.object({ prompt_tokens: z.number().optional(), total_tokens: z.number().optional() }).nullish(),
});

/** Creates the client of an endpoint with OpenAI's embeddings API. Throws the same errors as `openAiModel`. */
export function openAiEmbedder(config: EmbeddingsConfig, deps: ModelDeps): Embedder {
  const endpoint = endpointOf('embeddings', config, deps);
  return {
    async embed(texts, signal) {
      const body = {
        model: config.model,
        input: texts,
        encoding_format: 'float' as const,
        ...(config.dimensions === null ? {} : { dimensions: config.dimensions }),
      };
      const {
        model = config.model,
        vectors,
        totalTokens,
      } = await endpoint.whole(
        signal,
        (client) => client.embeddings.create(body),
        (answer) => readEmbeddings(answer, texts.length),
      );
      const tokens = { inputTokens: totalTokens, outputTokens: 0 };
      return { vectors, model, totalTokens, cost: costOf(config.prices, [config.model, model], tokens) };
    },
  };
}

function readEmbeddings(answer: unknown, count: number) {
  const parsed = EmbeddingsAnswer.safeParse(answer);
  const vectors = parsed.success ? inOrder(parsed.data.data, count) : undefined;
  if (!parsed.success || !vectors)
    throw new RemoteFailure('malformed', 'its response does not contain one vector per text');
  const { model, usage } = parsed.data;
  return { vectors, model, totalTokens: usage?.total_tokens ?? usage?.prompt_tokens ?? 0 };
}

function inOrder(data: Array<{ index: number; embedding: number[] }>, count: number): number[][] | undefined {
  const vectors: number[][] = [];
  for (const { index, embedding } of data) vectors[index] = embedding;
  const complete = vectors.length === count && data.length === count && Object.keys(vectors).length === count;
  return complete ? vectors : undefined;
}

function endpointOf(
  adapter: 'llm' | 'embeddings',
  config: LlmConfig | EmbeddingsConfig,
  { env, clock, random, ...deps }: ModelDeps,
): ModelEndpoint {
  const apiKey = deps.apiKey ?? resolveSecret(config.apiKey, env, `adapters.${adapter}.apiKey`);
  return new ModelEndpoint({ ...config, adapter, apiKey, clock, random });
}
