import { messageOf, RunnerFailure } from '../failure.ts';

/**
 * Serializes a value as JSON for later replays. Throws VALIDATION_ERROR for values that JSON would silently drop or
 * change, such as maps, functions and non-finite numbers.
 */
export function keptText(value: unknown, what: string): string {
  const lost = (kind: string, key: string): RunnerFailure =>
    new RunnerFailure(
      'VALIDATION_ERROR',
      `${what} ${key === '' ? 'is' : `holds under "${key}"`} ${kind}, which JSON cannot represent. Return strings, numbers, arrays and plain objects.`,
    );
  try {
    return (
      JSON.stringify(value, (key, item: unknown) => {
        const kind = unkept(item);
        if (kind !== undefined) throw lost(kind, key);
        return item;
      }) ?? 'null'
    );
  } catch (error) {
    if (error instanceof RunnerFailure) throw error;
    throw new RunnerFailure('VALIDATION_ERROR', `${what} cannot be stored as JSON: ${messageOf(error)}`);
  }
}

function unkept(item: unknown): string | undefined {
  if (typeof item === 'function') return 'a function';
  if (typeof item === 'symbol') return 'a symbol';
  if (typeof item === 'bigint') return 'a bigint';
  if (typeof item === 'number' && !Number.isFinite(item)) return String(item);
  if (item instanceof Map) return 'a Map';
  if (item instanceof Set) return 'a Set';
  if (item instanceof Promise) return 'a promise (await it)';
  if (item instanceof Response) return 'a Response';
  return undefined;
}
