import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { countSealedByKey } from '../../../store/sqlite/snapshot.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { timeText } from '../../time-text.ts';
import { requireMasterKeys } from './master-keys.ts';

interface KeyStatus {
  /** Fingerprint of the current master key. */
  keyId: string;
  source: 'environment' | 'keys.json';
  /** Epoch ms of the last rotation; null if there was none, or the environment gives the key. */
  since: number | null;
  /** Values encrypted with the current key. */
  current: number;
  /** Values encrypted with other keys. `readable`: the key is known. */
  old: Array<{ keyId: string; values: number; readable: boolean }>;
  /** Ids of the earlier keys that are still known. */
  previousKeyIds: string[];
}

/** @spec docs/operations.md "Change secrets" */
export const status = defineCommand({
  name: 'keys status',
  summary: 'Show the master key in use by its fingerprint, and values under old ones',
  example: 'svc keys status',
  args: z.object({}),
  async run(_args, context) {
    const folder = context.folder();
    const { id, from, since, previous } = requireMasterKeys(folder, context.platform().env);
    const file = join(folder.root, 'svc.db');
    const counts = existsSync(file) ? countSealedByKey(file) : new Map<string, number>();
    const old = [...counts]
      .filter(([keyId]) => keyId !== id)
      .map(([keyId, values]) => ({ keyId, values, readable: previous.includes(keyId) }));
    const current = counts.get(id) ?? 0;
    return ok<KeyStatus>({ keyId: id, source: from, since, current, old, previousKeyIds: previous });
  },
  text: ({ keyId, source, since, current, old, previousKeyIds }: KeyStatus, style) =>
    [
      `master key ${keyId} from ${source === 'environment' ? 'SVC_MASTER_KEY' : source}, ${since === null ? 'never rotated by svc' : `since ${timeText(since)}`}`,
      `${current} encrypted values use it.`,
      ...old.map(({ keyId: other, values, readable }) =>
        readable
          ? `${style.yellow('!')} ${values} still use ${other}. Run svc down, then svc keys rotate.`
          : `${style.red('✗')} ${values} use ${other}, which is unknown. Set SVC_MASTER_KEY_PREVIOUS to it, then svc keys rotate.`,
      ),
      ...(old.length === 0 && previousKeyIds.length > 0
        ? [`No value needs the previous key ${previousKeyIds.join(', ')}.`]
        : []),
    ].join('\n'),
});
