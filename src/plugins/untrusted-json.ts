import { LIMITS } from '../contracts/index.ts';
import { findCostProblem } from '../kit/data/json-cost.ts';

/** Matches the key `__proto__`, and `\u` escapes that can encode one of its characters. */
const MAY_HAVE_PROTOTYPE_KEY = /__proto__|\\u00[567]/;

/**
 * Parses JSON that can come from plugin code, and drops `__proto__` keys. Throws SyntaxError above 512 levels, 500,000
 * values or 50,000 distinct keys. `times` multiplies the limits for values and keys.
 */
export function parseUntrusted(text: string, times = 1): unknown {
  const fault = findCostProblem(text, LIMITS.jsonDepth, times);
  if (fault) throw new SyntaxError(`JSON ${fault}`);
  const value: unknown = JSON.parse(text);
  if (MAY_HAVE_PROTOTYPE_KEY.test(text)) dropPrototypeKeys(value);
  return value;
}

function dropPrototypeKeys(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__')) Reflect.deleteProperty(value, '__proto__');
  for (const item of Object.values(value)) dropPrototypeKeys(item);
}
