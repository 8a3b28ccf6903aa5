import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../../kit/errors.ts';
import { DATA_FILES } from '../../../store/sqlite/data-files.ts';
import { inspectDatabase } from '../../../store/sqlite/snapshot.ts';
import { readCredentials } from '../../supervisor/keys-file.ts';
import { type Fact, failure, fine, type Patient } from './check.ts';

/** Reads every page of every database, live ones too. */
export function checkStores({ folder }: Patient): Fact[] {
  const found = DATA_FILES.filter(({ name }) => existsSync(join(folder.root, name)));
  const facts = found.flatMap(({ name, migrations }) => {
    const file = join(folder.root, name);
    try {
      const { faults } = inspectDatabase(file, migrations);
      return faults.map((fault) =>
        failure(`${file} is damaged: ${fault}`, 'svc down, then svc restore <backup>'),
      );
    } catch (error) {
      return [failure(messageOf(error), 'svc restore <backup> puts sound data in its place.')];
    }
  });
  if (facts.length > 0) return facts;
  return [fine(found.length === 0 ? 'no data yet' : `${found.map(({ name }) => name).join(', ')} are sound`)];
}

/** The operator's credentials, and what they are for. */
export function checkCredentials({ folder }: Patient): Fact[] {
  try {
    return [fine(readCredentials(folder) ? "the operator's are here" : 'made at the first start')];
  } catch (error) {
    return [
      failure(
        messageOf(error),
        'Restore credentials.json from a backup, or remove it: the next start makes a new one.',
      ),
    ];
  }
}
