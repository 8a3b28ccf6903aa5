import { PlatformError } from '../../../../kit/errors/errors.ts';

export interface PageRequest {
  cursor?: string | undefined;
  limit: number;
}

export interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

/** Parses a page cursor to a sequence number. Throws VALIDATION_ERROR for an invalid cursor. */
export function seqOf(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const number = Number(cursor);
  if (/^\d+$/.test(cursor) && Number.isSafeInteger(number)) return number;
  throw new PlatformError('VALIDATION_ERROR', 'query.cursor: use "nextCursor" of the previous page.');
}
