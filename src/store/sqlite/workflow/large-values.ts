import type { Database } from '../database.ts';

/**
 * Maximum length of a text that is stored inline. Longer texts are stored in a separate table, so that frequently
 * changed rows stay small.
 */
const LARGE_CHARS = 1024;

/** Stores a short text inline and a long text in a separate table. Methods must run inside `db.write` or `db.read`. */
export interface LargeValues {
  /**
   * Returns the text to store inline. For a large text, the result is `@<n>`, which refers to row n of the separate
   * table. JSON never starts with `@`.
   */
  put(seq: number, json: string): string;
  put(seq: number, json: string | null): string | null;
  isLarge(json: string): boolean;
  get(seq: number, kept: string): string;
  get(seq: number, kept: string | null): string | null;
}

export function largeValues(db: Database): LargeValues {
  const insert = db
    .prepare<[{ seq: number; body: string }], number>(`
      insert into large_value (run_seq, n, body)
      values (:seq, coalesce((select max(n) from large_value where run_seq = :seq), 0) + 1, :body) returning n`)
    .pluck();
  const find = db
    .prepare<[{ seq: number; n: number }], string>(
      'select body from large_value where run_seq = :seq and n = :n',
    )
    .pluck();

  function put(seq: number, json: string | null): string | null {
    if (json === null || json.length <= LARGE_CHARS || json.startsWith('@')) return json;
    return `@${insert.get({ seq, body: json })}`;
  }
  function get(seq: number, kept: string | null): string | null {
    if (kept === null || !kept.startsWith('@')) return kept;
    const body = find.get({ seq, n: Number(kept.slice(1)) });
    if (body === undefined) throw new Error(`Run ${seq} refers to a missing value: ${kept}`);
    return body;
  }
  return { put, get, isLarge: (json) => json.length > LARGE_CHARS } as LargeValues;
}
