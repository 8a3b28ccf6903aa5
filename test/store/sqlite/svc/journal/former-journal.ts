import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../../../src/kit/files/paths.ts';
import { openDatabase } from '../../../../../src/store/sqlite/index.ts';
import { GATEWAY_MIGRATIONS } from '../../../../../src/store/sqlite/svc/schema.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { journalOf } from '../journalled-store.ts';

/**
 * What a gateway of schema 6 left that was killed: frames 4 to 7, of which its database has none. Three accepted
 * deliveries with markers `k0` to `k2`, and the end of the first.
 */
export const FORMER = join(packageRoot, 'test/fixtures/journals/inbox-of-schema-6.bin');
export const IDS = [1, 2, 3].map((n) => `01890000-0000-7000-8000-00000000000${n}`);
export const LEFT = new Map(
  [IDS[0]!, IDS[1]!, IDS[2]!].map((id, n) => [id, n === 0 ? 'succeeded' : 'accepted']),
);

/** A data folder as that gateway left it. */
export async function formerFolder(applied = 3): Promise<string> {
  const dataDir = await tempDir();
  const file = join(dataDir, 'svc.db');
  const old = await openDatabase({ file, migrations: GATEWAY_MIGRATIONS.slice(0, 6) });
  await old.write(() => old.prepare('update delivery_journal set applied = ?').run(applied));
  await old.close();
  mkdirSync(journalOf(dataDir));
  copyFileSync(FORMER, join(journalOf(dataDir), '0.log'));
  return dataDir;
}
