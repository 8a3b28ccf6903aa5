import { LIMITS } from '../contracts/index.ts';
import { nestsDeeperThan } from '../kit/json.ts';

/** Shorter text cannot nest deep enough to matter. */
const SHALLOW_CHARS = 2 * LIMITS.jsonDepth;

/**
 * Parses JSON that plugin code may have written. Throws SyntaxError, also for text nested deeper than 512
 * levels. Keys named `__proto__` are dropped, so that code which copies a value cannot set a prototype by it.
 */
export function parseUntrusted(text: string): unknown {
  if (text.length > SHALLOW_CHARS && nestsDeeperThan(text, LIMITS.jsonDepth)) {
    throw new SyntaxError(`JSON nested deeper than ${LIMITS.jsonDepth} levels`);
  }
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
