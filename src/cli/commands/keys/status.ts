import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { postgresUrlOf } from '../../../kit/config/store-url.ts';
import { countSealedByKey } from '../../../store/sqlite/snapshot.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { timeText } from '../../time-text.ts';
import { requireMasterKeys } from './master-keys.ts';
import { countSecrets } from './open-secrets.ts';

interface KeyStatus {
  /** Fingerprint of the current master key. */
  keyId: string;
  source: 'environment' | 'keys.json';
  /**
   * Time of the last rotation, in epoch milliseconds. Null if the key was never rotated, or if the environment sets the
   * key.
   */
  since: number | null;
  /** Number of values encrypted with the current key. */
  current: number;
  /** Number of values encrypted with each former or unknown key. `readable` is false if the key is unknown. */
  old: Array<{ keyId: string; values: number; readable: boolean }>;
  /** Fingerprints of the former keys that can still decrypt secrets. */
  previousKeyIds: string[];
}

async function countByKey({ root }: DataFolder, url: string | null): Promise<Map<string, number>> {
  if (url !== null) return countSecrets(url);
  const file = join(root, 'svc.db');
  return existsSync(file) ? countSealedByKey(file) : new Map();
}

/** @spec docs/operations.md "Change secrets" */
export const status = defineCommand({
  name: 'keys status',
  summary: 'Show fingerprints of master keys and the number of values of each',
  example: 'svc keys status',
  args: z.object({}),
  async run(_args, context) {
    const folder = context.folder();
    const { config, env } = context.platform();
    const { id, from, since, previous } = requireMasterKeys(folder, env);
    const counts = await countByKey(folder, postgresUrlOf(config.store, env));
    const old = [...counts]
      .filter(([keyId]) => keyId !== id)
      .map(([keyId, values]) => ({ keyId, values, readable: previous.includes(keyId) }));
    const current = counts.get(id) ?? 0;
    return ok<KeyStatus>({ keyId: id, source: from, since, current, old, previousKeyIds: previous });
  },
  text: ({ keyId, source, since, current, old, previousKeyIds }: KeyStatus, style) =>
    [
      `Master key ${keyId} from ${source === 'environment' ? 'SVC_MASTER_KEY' : source}, ${since === null ? 'never rotated by svc' : `since ${timeText(since)}`}.`,
      `Encrypted values with this key: ${current}.`,
      ...old.flatMap(({ keyId: other, values, readable }) =>
        readable
          ? [
              `${style.yellow('!')} With the previous key ${other}: ${values}.`,
              '  Run svc down, then svc keys rotate.',
            ]
          : [
              `${style.red('✗')} With the unknown key ${other}: ${values}.`,
              '  Set SVC_MASTER_KEY_PREVIOUS to it and run svc keys rotate, or set those',
              '  secrets again.',
            ],
      ),
      ...(old.length === 0 && previousKeyIds.length > 0
        ? [`No value needs the previous key ${previousKeyIds.join(', ')}.`]
        : []),
    ].join('\n'),
});
