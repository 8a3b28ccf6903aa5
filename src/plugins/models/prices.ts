import type { LlmUsage, ModelPrice } from '../../contracts/index.ts';

/**
 * Cost of a call in US dollars; null when the price table has neither the requested model nor the answering
 * one (a request for `gpt-5` is answered by `gpt-5-2030-01-31`).
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
  // Rounding to a billionth of a dollar removes floating point errors.
  return Math.round(cost * 1e9) / 1e9;
}
