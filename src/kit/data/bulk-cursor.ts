import { createHash } from 'node:crypto';
import { PlatformError } from '../errors/errors.ts';
import { hours } from '../time/duration.ts';
import { canonicalJson } from './json.ts';

/**
 * Position in a bulk action. The cursor pins what the first call saw: the action, the selection, and the newest object.
 * @spec docs/decisions/0232
 */
export interface BulkCursor {
  /** Id of the bulk action. Repeated calls recognize by it what they have done. */
  id: string;
  pinnedAt: number;
  /** Number of the newest object that belongs to the selection. */
  newest: number;
  /** Where the next call continues. Empty before the first one. */
  at: readonly number[];
}

/** Shorter than the retention of idempotency keys, so that a repeated call always finds what it did. */
const MAX_AGE_MS = hours(24);

/** Returns the text of a cursor for clients. `selection` is everything that decides which objects are changed, and how. */
export function formatBulkCursor({ id, pinnedAt, newest, at }: BulkCursor, selection: object): string {
  return Buffer.from(JSON.stringify([digestOf(selection), id, pinnedAt, newest, ...at])).toString(
    'base64url',
  );
}

/** Parses a cursor. Throws VALIDATION_ERROR if it is malformed, too old, or of another selection. */
export function parseBulkCursor(text: string, selection: object, now: number): BulkCursor {
  const [digest, id, ...numbers] = partsOf(text);
  const [pinnedAt, newest, ...at] = numbers.filter((part) => Number.isSafeInteger(part)) as number[];
  if (typeof id !== 'string' || newest === undefined || at.length + 2 !== numbers.length)
    throw refused('must be the nextCursor of the dry run or of the previous call.');
  if (digest !== digestOf(selection))
    throw refused('belongs to another action or selection; repeat the fields of the dry run.');
  if (now - pinnedAt! > MAX_AGE_MS) throw refused('is older than a day; start again with a dry run.');
  return { id, pinnedAt: pinnedAt!, newest, at };
}

function partsOf(text: string): unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}

function digestOf(selection: object): string {
  return createHash('sha256').update(canonicalJson(selection)).digest('base64url').slice(0, 22);
}

function refused(why: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `body.cursor: ${why}`);
}
