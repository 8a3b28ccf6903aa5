import type { Database } from './database.ts';

/** Returns the size of the file without its free pages. */
export function usedBytes(db: Pick<Database, 'pragma'>): number {
  const value = (pragma: string): number =>
    (db.pragma(pragma) as Array<Record<string, number>>)[0]![pragma] as number;
  return (value('page_count') - value('freelist_count')) * value('page_size');
}
