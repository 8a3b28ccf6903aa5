import type { LlmReply, LlmToolReply } from '../../contracts/index.ts';
import type { Analytics } from '../../kit/telemetry/analytics.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import type { LanguageModel, LlmRequest } from '../models/language-model.ts';
import { type AdapterWatch, watched } from './adapter-watch.ts';
import { requirePlatform } from './call-scope.ts';
import { eventFields } from './event-fields.ts';
import { chatArguments, toolArguments } from './llm-arguments.ts';
import { LlmStreams } from './llm-streams.ts';

/** Returns the configured language model. Throws ADAPTER_NOT_CONFIGURED if no model is configured. */
export type GetLanguageModel = () => Promise<LanguageModel>;

export interface LlmServiceDeps {
  model: GetLanguageModel;
  analytics: Analytics;
  watch: AdapterWatch;
  clock: Clock;
}

/**
 * Creates `ctx.llm`. Handlers read a stream with `openStream` and repeated `nextPieces` calls, so that the reader sets
 * the pace. The methods throw PERMISSION_DENIED and the errors of `LanguageModel`.
 */
export function createLlmService({ model, analytics, watch, clock }: LlmServiceDeps): PlatformService {
  const streams = new LlmStreams(clock);

  /**
   * Emits the analytics event of a completion. @spec Standard analytics types: llm.completion.completed,
   * llm.chatWithTools.completed
   */
  function tell(
    { request }: PlatformCallContext,
    type: string,
    reply: LlmToolReply,
    durationMs: number,
    more: Record<string, number> = {},
  ): void {
    const { model: name, tier, usage, cost } = reply;
    watch.used('llm', name, usage, cost);
    const fields = eventFields(request);
    analytics.track(type, {
      ...fields,
      ctx: { ...fields.ctx, pluginId: request.plugin.id },
      payload: { totalTokens: usage.totalTokens, totalCost: cost, model: name, tier, durationMs, ...more },
    });
  }

  async function chat(context: PlatformCallContext, asked: LlmRequest): Promise<LlmReply> {
    const { value, durationMs } = await watched(watch, 'llm', 'chat', async () =>
      (await model()).chat(asked, context.signal),
    );
    tell(context, 'llm.completion.completed', value, durationMs);
    return withoutCalls(value);
  }
  /** Yields the chunks of a reply stream. Emits one completion event at the end of the stream. */
  async function* pieces(context: PlatformCallContext, asked: LlmRequest, signal: AbortSignal) {
    const startedAt = performance.now();
    let failed = false;
    try {
      const reply = yield* (await model()).stream(asked, signal);
      tell(context, 'llm.completion.completed', reply, Math.round(performance.now() - startedAt));
      return withoutCalls(reply);
    } catch (error) {
      failed = true;
      throw error;
    } finally {
      watch.called('llm', 'stream', failed, Math.round(performance.now() - startedAt));
    }
  }
  const permitted =
    (run: PlatformService[string]): PlatformService[string] =>
    async (context, args) => {
      requirePlatform(context.request, 'llm');
      return run(context, args);
    };

  return {
    complete: permitted(async (context, args) => chat(context, chatArguments(args))),
    chat: permitted(async (context, args) => chat(context, chatArguments(args))),
    chatWithTools: permitted(async (context, args) => {
      const asked = toolArguments(args);
      const { value, durationMs } = await watched(watch, 'llm', 'chatWithTools', async () =>
        (await model()).chat(asked, context.signal),
      );
      const toolCalls = value.toolCalls.length;
      tell(context, 'llm.chatWithTools.completed', value, durationMs, { toolCalls });
      return value;
    }),
    openStream: permitted(async (context, args) => {
      const asked = chatArguments(args);
      return streams.open(context, (signal) => pieces(context, asked, signal));
    }),
    nextPieces: async ({ request }, [id]) => streams.next(request.executionId, id),
    closeStream: async ({ request }, [id]) => streams.close(request.executionId, id),
  };
}

function withoutCalls({ toolCalls: _, ...reply }: LlmToolReply): LlmReply {
  return reply;
}
