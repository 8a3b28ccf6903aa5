import { LIMITS } from '../contracts/index.ts';
import { costFault } from '../kit/json-cost.ts';

/**
 * Parses JSON that plugin code may have written. Throws SyntaxError, also for text nested deeper than 512
 * levels or of more than 500,000 values or 50,000 different keys, or `times` as many. Keys named `__proto__` are dropped, so that code which copies a value cannot set a prototype by it.
 */
export function parseUntrusted(text: string, times = 1): unknown {
  const fault = costFault(text, LIMITS.jsonDepth, times);
  if (fault) throw new SyntaxError(`JSON ${fault}`);
  const value: unknown = JSON.parse(text);
  // The key can also be written with \u escapes.
  if (text.includes('__proto__') || text.includes('\\u005') || text.includes('\\u007'))
    dropPrototypeKeys(value);
  return value;
}

function dropPrototypeKeys(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__')) Reflect.deleteProperty(value, '__proto__');
  for (const item of Object.values(value)) dropPrototypeKeys(item);
}
