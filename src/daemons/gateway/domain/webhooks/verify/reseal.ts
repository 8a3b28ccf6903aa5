import { PlatformError } from '../../../../../kit/errors/errors.ts';
import { type Seal, sealingKeyId } from '../../../../../kit/security/keys.ts';
import type {
  ResealedRow,
  SealedRow,
  SealedSecretStore,
  SecretKey,
} from '../../../../../store/ports/index.ts';
import { describeEndpoint } from '../receive/endpoint-name.ts';
import { isRecordKey, LOST_KEY } from './record-seal.ts';
import { sealContext } from './secrets.ts';

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
  const { store, onProgress } = options;
  let values = 0;
  let last: SecretKey | null = null;
  for (;;) {
    const rows: SealedRow[] = await store.after(last, BATCH_ROWS);
    const end = rows.at(-1);
    if (!end) return values;
    const changes = rows.flatMap((row) => resealed(row, options));
    if (changes.length > 0) await store.replace(changes);
    values += changes.reduce((sum, row) => sum + changedValues(row), 0);
    onProgress?.(values);
    const { namespaceId, pluginId, event, instanceId } = end;
    last = { namespaceId, pluginId, event, instanceId };
  }
}

function resealed(row: SealedRow, { seal, replaced }: ResealOptions): ResealedRow[] {
  const context = sealContext(row);
  const renew = (sealed: string): string => {
    if (!replaced.has(sealingKeyId(sealed) ?? '')) return sealed;
    try {
      return seal.seal(seal.open(sealed, context), context);
    } catch (cause) {
      if (isRecordKey(row)) return seal.seal(LOST_KEY, context);
      throw damaged(row, cause);
    }
  };
  const { current, previous } = row;
  const next = { ...row, current: renew(current), previous: previous === null ? null : renew(previous) };
  if (next.current === current && next.previous === previous) return [];
  return [{ ...next, from: { current, previous } }];
}

const changedValues = ({ from, current, previous }: ResealedRow): number =>
  Number(from.current !== current) + Number(from.previous !== previous);

function damaged(row: SealedRow, cause: unknown): PlatformError {
  return new PlatformError(
    'STORE_ERROR',
    `The secret of webhook ${describeEndpoint(row)} in namespace ${row.namespaceId} is damaged and cannot be decrypted.`,
    {
      details: {
        hint: 'Start the platform, revoke it with svc webhooks revoke, stop the platform, and run svc keys rotate again.',
      },
      cause,
    },
  );
}
