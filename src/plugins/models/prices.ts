import type { LlmUsage, ModelPrice } from '../../contracts/index.ts';

/**
 * US dollars of a call; null when the price table knows neither the model that was asked for nor the one that
 * answered (`gpt-5` is answered by `gpt-5-2030-01-31`).
 */
export function costOf(
  prices: Record<string, ModelPrice>,
  models: readonly string[],
  { inputTokens, outputTokens }: Pick<LlmUsage, 'inputTokens' | 'outputTokens'>,
): number | null {
  const known = models.find((model) => Object.hasOwn(prices, model));
  if (known === undefined) return null;
  const { inputPerMillion, outputPerMillion } = prices[known]!;
  const cost = (inputTokens * inputPerMillion + outputTokens * outputPerMillion) / 1e6;
  // Billionths of a dollar: what is left of the arithmetic beyond them is noise.
  return Math.round(cost * 1e9) / 1e9;
}
