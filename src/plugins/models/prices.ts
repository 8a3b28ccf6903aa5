import type { LlmUsage, ModelPrice } from '../../contracts/index.ts';

/**
 * Returns the cost of a call in US dollars, or null if no price is configured. `models` are the name in the request
 * and the name in the response, which may be longer: `gpt-5` and `gpt-5-2030-01-31`.
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
  // Rounding to a billionth of a dollar removes floating-point errors.
  return Math.round(cost * 1e9) / 1e9;
}
