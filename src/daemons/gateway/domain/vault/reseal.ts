import { PlatformError } from '../../../../kit/errors/errors.ts';
import { type Seal, sealingKeyId } from '../../../../kit/security/keys.ts';
import type { ResealedRow, SealedKey, SealedRow, SealedSecretStore } from '../../../../store/ports/index.ts';
import { SEALED_COLUMNS, type SealedColumns } from '../../../../store/ports/index.ts';

/** Rows per transaction. The limit bounds memory and the time for which the store is locked. */
const BATCH_ROWS = 200;

export interface ResealOptions {
  store: SealedSecretStore;
  /** Encrypts with the new key and decrypts with all known keys. */
  seal: Seal;
  /** Ids of the keys to replace. Values that were encrypted with other keys are left unchanged. */
  replaced: ReadonlySet<string>;
  /** Callback that is called after each committed batch with the total number of values encrypted so far. */
  onProgress?: (values: number) => void;
}

/** Re-encrypts with the new key all values whose current key is in `replaced`. Safe to repeat after a crash. */
export async function resealSecrets(options: ResealOptions): Promise<number> {
  let values = 0;
  for (const columns of SEALED_COLUMNS) {
    for await (const changed of resealTable(columns, options)) {
      values += changed;
      options.onProgress?.(values);
    }
  }
  return values;
}

/** Yields the number of changed values of each batch. */
async function* resealTable(columns: SealedColumns, options: ResealOptions): AsyncGenerator<number> {
  const { store } = options;
  let last: SealedKey | null = null;
  for (;;) {
    const rows: SealedRow[] = await store.after(columns.table, last, BATCH_ROWS);
    const end = rows.at(-1);
    if (!end) return;
    const changes = rows.flatMap((row) => resealed(columns, row, options));
    if (changes.length > 0) await store.replace(columns.table, changes);
    yield changes.reduce((sum, row) => sum + changedValues(row), 0);
    last = end.key;
  }
}

function resealed(columns: SealedColumns, { key, values }: SealedRow, options: ResealOptions): ResealedRow[] {
  const entries = Object.entries(values).map(([column, value]): [string, string | null] => [
    column,
    value && renewed(columns, { key, column, value }, options),
  ]);
  if (entries.every(([column, value]) => value === values[column])) return [];
  return [{ key, values: Object.fromEntries(entries), from: values }];
}

function renewed(
  columns: SealedColumns,
  { key, column, value }: { key: SealedKey; column: string; value: string },
  { seal, replaced }: ResealOptions,
): string {
  if (!replaced.has(sealingKeyId(value) ?? '')) return value;
  const context = columns.context(key, column);
  try {
    return seal.seal(seal.open(value, context), context);
  } catch (cause) {
    const replacement = columns.replacement?.(key);
    if (replacement !== undefined) return seal.seal(replacement, context);
    const hint = `Start the platform, ${columns.repair}, stop the platform, and run svc keys rotate again.`;
    const message = `${columns.describe(key)} is damaged and cannot be decrypted.`;
    throw new PlatformError('STORE_ERROR', message, { details: { hint }, cause });
  }
}

const changedValues = ({ from, values }: ResealedRow): number =>
  Object.entries(values).filter(([column, value]) => value !== from[column]).length;
