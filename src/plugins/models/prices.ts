import type { LlmUsage, ModelPrice } from '../../contracts/index.ts';

/**
 * Returns the cost of a call in US dollars, or null if no price is configured. `models` holds the requested model name
 * and the model name in the response.
 */
export function costOf(
  prices: Record<string, ModelPrice>,
  models: readonly string[],
  { inputTokens, outputTokens }: Pick<LlmUsage, 'inputTokens' | 'outputTokens'>,
): number | null {
  const priced = models.find((model) => Object.hasOwn(prices, model));
  if (priced === undefined) return null;
  const { inputPerMillion, outputPerMillion } = prices[priced]!;
  const cost = (inputTokens * inputPerMillion + outputTokens * outputPerMillion) / 1e6;
  // Rounds to a billionth of a dollar, which removes floating-point errors.
  return Math.round(cost * 1e9) / 1e9;
}
