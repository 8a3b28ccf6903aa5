import type { Analytics } from '../../kit/telemetry/analytics.ts';
import type { PlatformService } from '../execution.ts';
import type { Embedder } from '../models/language-model.ts';
import { type AdapterWatch, watched } from './adapter-watch.ts';
import { requirePlatform } from './call-scope.ts';
import { eventFields } from './event-fields.ts';
import { textsArgument } from './llm-arguments.ts';

/** Returns the configured embedding model. Throws ADAPTER_NOT_CONFIGURED if no model is configured. */
export type GetEmbedder = () => Promise<Embedder>;

/**
 * Creates `ctx.embeddings`. Calls of the service throw PERMISSION_DENIED if the manifest does not request embeddings.
 * Calls also throw the errors of the `Embedder`.
 */
export function createEmbeddingsService(
  embedder: GetEmbedder,
  analytics: Analytics,
  watch: AdapterWatch,
): PlatformService {
  return {
    async embed({ request, signal }, [given]) {
      requirePlatform(request, 'embeddings');
      const texts = textsArgument(given);
      const { value, durationMs } = await watched(watch, 'embeddings', 'embed', async () =>
        (await embedder()).embed(texts, signal),
      );
      const { totalTokens, cost, model } = value;
      watch.used('embeddings', model, { inputTokens: totalTokens, outputTokens: 0, totalTokens }, cost);
      const fields = eventFields(request);
      // @spec Standard analytics types: embeddings.embed.completed
      analytics.track('embeddings.embed.completed', {
        ...fields,
        ctx: { ...fields.ctx, pluginId: request.plugin.id },
        payload: { totalTokens, totalCost: cost, durationMs },
      });
      return value;
    },
  };
}
