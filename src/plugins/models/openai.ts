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
import { serverSentEvents } from '../../kit/streams/server-sent-events.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { chatBody, type ReadReply, readPiece, readReply, usageOf } from './chat-wire.ts';
import { createModelEndpoint, type ModelEndpoint } from './endpoint.ts';
import type { Embedder, LanguageModel, LlmRequest } from './language-model.ts';
import { costOf } from './prices.ts';
import { RemoteFailure, toCallError } from './remote-error.ts';

export interface ModelDeps {
  env: Environment;
  clock: Clock;
  random: Random;
}

/**
 * Any endpoint with OpenAI's chat completion API. Throws ADAPTER_NOT_CONFIGURED when an environment variable
 * for a key is missing.
 */
export function openAiModel(config: LlmConfig, deps: ModelDeps): LanguageModel {
  const endpoint = endpointOf('llm', config, deps);
  const { host } = new URL(config.baseUrl);

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
      const answer = await endpoint.json('/chat/completions', chatBody(request, model, limit), signal);
      return whole(
        explained('llm', host, () => readReply(answer)),
        tier,
        model,
      );
    },
    async *stream(request, signal) {
      const { tier, model, limit } = target(request);
      const body = {
        ...chatBody(request, model, limit),
        stream: true,
        stream_options: { include_usage: true },
      };
      const read: ReadReply = {
        text: '',
        finishReason: '',
        model: undefined,
        usage: usageOf(null),
        toolCalls: [],
      };
      for await (const { data } of serverSentEvents(endpoint.bytes('/chat/completions', body, signal))) {
        if (data === undefined) continue;
        if (data === '[DONE]') return whole(read, tier, model);
        const piece = explained('llm', host, () => readPiece(data));
        read.text += piece.text;
        read.finishReason = piece.finishReason ?? read.finishReason;
        read.model = piece.model ?? read.model;
        read.usage = piece.usage ?? read.usage;
        if (piece.text !== '') yield piece.text;
      }
      // Some servers omit `[DONE]`; without a finish reason too, the stream was cut off.
      if (read.finishReason !== '') return whole(read, tier, model);
      throw toCallError(new RemoteFailure('network', 'its stream broke off'), 'llm', host, 1);
    },
  };
}

const EmbeddingsAnswer = z.object({
  model: z.string().optional(),
  data: z.array(z.object({ index: z.number().int().min(0), embedding: z.array(z.number()) })),
  usage: z.object({ prompt_tokens: z.number().optional(), total_tokens: z.number().optional() }).nullish(),
});

/** Any endpoint with OpenAI's embedding API; throws as `openAiModel` does. */
export function openAiEmbedder(config: EmbeddingsConfig, deps: ModelDeps): Embedder {
  const endpoint = endpointOf('embeddings', config, deps);
  const { host } = new URL(config.baseUrl);
  return {
    async embed(texts, signal) {
      const body = {
        model: config.model,
        input: texts,
        encoding_format: 'float',
        ...(config.dimensions === null ? {} : { dimensions: config.dimensions }),
      };
      const answer = EmbeddingsAnswer.safeParse(await endpoint.json('/embeddings', body, signal));
      const vectors = answer.success ? inOrder(answer.data.data, texts.length) : undefined;
      if (!answer.success || !vectors) {
        const failure = new RemoteFailure('malformed', 'its answer does not hold one vector for each text');
        throw toCallError(failure, 'embeddings', host, 1);
      }
      const { model = config.model, usage } = answer.data;
      const totalTokens = usage?.total_tokens ?? usage?.prompt_tokens ?? 0;
      const tokens = { inputTokens: totalTokens, outputTokens: 0 };
      return { vectors, model, totalTokens, cost: costOf(config.prices, [config.model, model], tokens) };
    },
  };
}

function inOrder(data: Array<{ index: number; embedding: number[] }>, count: number): number[][] | undefined {
  const vectors: number[][] = [];
  for (const { index, embedding } of data) vectors[index] = embedding;
  const complete = vectors.length === count && data.length === count && !vectors.includes(undefined as never);
  return complete ? vectors : undefined;
}

function endpointOf(
  adapter: 'llm' | 'embeddings',
  config: LlmConfig | EmbeddingsConfig,
  { env, clock, random }: ModelDeps,
): ModelEndpoint {
  const apiKey = resolveSecret(config.apiKey, env, `adapters.${adapter}.apiKey`);
  return createModelEndpoint({ ...config, adapter, apiKey, clock, random });
}

/** Converts errors of parsing a response into errors for the plugin. */
function explained<Value>(adapter: 'llm' | 'embeddings', host: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw error instanceof RemoteFailure ? toCallError(error, adapter, host, 1) : error;
  }
}
