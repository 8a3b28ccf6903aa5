import { z } from 'zod';
import { resealSecrets } from '../../../daemons/gateway/domain/vault/reseal.ts';
import type { Environment } from '../../../kit/config/config.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { createSeal, masterKeyId } from '../../../kit/security/keys.ts';
import { systemRandom } from '../../../kit/security/random.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';
import { endKeyRotation, loadSecrets, readKeys, startKeyRotation } from '../../../supervisor/keys-file.ts';
import type { CurrentMasterKey } from '../../../supervisor/master-key.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { requireStopped, whileStopped } from '../restore/replace-data.ts';
import { requireMasterKeys } from './master-keys.ts';
import { type OpenSecrets, openSecrets } from './open-secrets.ts';

const OPERATION = 'key rotation';
const PROGRESS_VALUES = 1000;

interface Rotated {
  /** Fingerprint of the new master key, which now encrypts all secrets. */
  keyId: string;
  source: 'environment' | 'keys.json';
  /** Fingerprints of the former master keys, which no stored value needs any more. */
  replacedKeyIds: string[];
  /** Number of values that this command encrypted again. */
  values: number;
  /** Whether the command completed an interrupted rotation of the key in `keys.json`. */
  resumed: boolean;
  /** Number of values encrypted with each unknown key. These values cannot be decrypted and are left unchanged. */
  unreadable: Array<{ keyId: string; values: number }>;
}

/** @spec docs/operations.md "Change secrets" */
export const rotate = defineCommand({
  name: 'keys rotate',
  summary: 'Replace the master key of a stopped platform and re-encrypt all secrets',
  example: 'svc keys rotate --yes',
  args: z.object({}),
  async run(_args, context) {
    const folder = context.folder();
    const loaded = context.platform();
    const { env } = loaded;
    const before = requireMasterKeys(folder, env);
    requireStopped(folder, OPERATION);
    requireNewKey(before);
    const question = `Encrypt all secrets with a new master key? Earlier backups keep needing the old one.`;
    if (!(await confirm(context, question))) throw new CancelledError();
    return ok<Rotated>(
      await whileStopped(folder, OPERATION, async () => {
        const stack = new AsyncDisposableStack();
        try {
          const opened = await openSecrets(folder, loaded, { operation: OPERATION, stack });
          return await rotateKeys(folder, env, opened, context);
        } finally {
          await stack.disposeAsync();
        }
      }),
    );
  },
  text: ({ keyId, source, replacedKeyIds, values, resumed, unreadable }: Rotated, style) =>
    [
      `${style.green('✓')} ${countedValues(values)} encrypted with master key ${keyId}.`,
      ...(resumed ? ['An interrupted rotation was completed.'] : []),
      ...(source === 'environment'
        ? ['Unset SVC_MASTER_KEY_PREVIOUS, and keep that key for earlier backups.']
        : replacedKeyIds.map((id) => `Key ${id} is removed. Backups made before contain it.`)),
      ...unreadable.flatMap((left) => [
        `${style.yellow('!')} ${countedValues(left.values)} of the unknown key ${left.keyId} left unchanged.`,
        '  Set SVC_MASTER_KEY_PREVIOUS to it and repeat, or set those secrets again.',
      ]),
    ].join('\n'),
});

const countedValues = (values: number): string => (values === 1 ? '1 value' : `${values} values`);

/** Throws CONFLICT if the only known key comes from the environment. Only the operator can change the environment. */
function requireNewKey({ from, id, previous }: CurrentMasterKey): void {
  if (from === 'keys.json' || previous.length > 0) return;
  throw new PlatformError('CONFLICT', `SVC_MASTER_KEY gives the master key (${id}); svc cannot change it.`, {
    details: {
      keyId: id,
      hint: 'Rename it to SVC_MASTER_KEY_PREVIOUS, set SVC_MASTER_KEY to 32 new bytes in base64url, and run svc keys rotate again.',
    },
  });
}

async function rotateKeys(
  folder: DataFolder,
  env: Environment,
  { store, noteKey }: OpenSecrets,
  { clock, ui }: CommandContext,
): Promise<Rotated> {
  const random = systemRandom();
  const counts = await store.countByKey();
  const before = requireMasterKeys(folder, env);
  const stored = readKeys(folder);
  const resumed = before.from === 'keys.json' && stored?.previousMasterKey !== undefined;
  const hasOldValues = before.previous.some((id) => counts.has(id));
  if (!resumed && !hasOldValues && before.from === 'keys.json' && stored)
    startKeyRotation(folder, stored, random.secret(32), clock.now());
  const { keys } = loadSecrets(folder, env, random);
  const keyId = masterKeyId(keys.masterKey);
  await noteKey(keyId);
  const known = keys.previousMasterKeys ?? [];
  const replaced = new Set(known.map(masterKeyId).filter((id) => id !== keyId));
  let noted = 0;
  const values = await resealSecrets({
    store,
    seal: createSeal(keys.masterKey, known),
    replaced,
    onProgress(done) {
      if (done - noted < PROGRESS_VALUES) return;
      noted = done;
      ui.note(`${done} values encrypted.`);
    },
  });
  const left = await store.countByKey();
  requireNoneLeft(left, replaced);
  const now = readKeys(folder);
  if (now?.previousMasterKey !== undefined) endKeyRotation(folder, now);
  const unreadable = [...left].flatMap(([id, count]) => (id === keyId ? [] : [{ keyId: id, values: count }]));
  return { keyId, source: before.from, replacedKeyIds: [...replaced], values, resumed, unreadable };
}

function requireNoneLeft(left: ReadonlyMap<string, number>, replaced: ReadonlySet<string>): void {
  const still = [...left].filter(([id]) => replaced.has(id));
  if (still.length === 0) return;
  const count = still.reduce((sum, [, values]) => sum + values, 0);
  throw new PlatformError('CONFLICT', `${count} values were written with an old key during the rotation.`, {
    details: { hint: 'Stop every process of this platform, and run svc keys rotate again.' },
  });
}
