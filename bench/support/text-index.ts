import { join } from 'node:path';
import Sqlite from 'better-sqlite3';

const POLL_MS = 2000;
/** The index lags behind by at most a part of this size. */
const MAX_UNINDEXED_ROWS = 2048;

/** Waits until the text index of a data folder covers the deliveries up to a position. */
export async function waitUntilIndexed(dataDir: string, position: number): Promise<void> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    try {
      const db = new Sqlite(join(dataDir, 'search.db'), { readonly: true });
      const until = db.prepare<[], number>('select indexed_until from progress').pluck().get()!;
      db.close();
      if (position - until < MAX_UNINDEXED_ROWS) return;
    } catch {
      // The index does not exist yet.
    }
  }
}
