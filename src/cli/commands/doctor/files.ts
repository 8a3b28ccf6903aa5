import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type CheckTarget, type Fact, failure, fine, warning } from './check.ts';

/** Subfolders of the data folder in which the modes of files are checked. */
const CHECKED_SUBFOLDERS = ['run', 'logs'];
const GROUP_AND_OTHERS = 0o077;

/** Checks that the data folder and the `.env` file are accessible only to their owner. */
export function checkModes({ folder, loaded }: CheckTarget): Fact[] {
  const { root } = folder;
  const secrets = join(loaded.projectDir, '.env');
  if (!existsSync(root) && !existsSync(secrets)) return [fine('no data yet')];
  const paths = [
    ...(existsSync(root) ? [root, ...entriesOf(root)] : []),
    ...(existsSync(secrets) ? [secrets] : []),
  ];
  const facts = paths.flatMap((path) => examine(path));
  if (facts.length > 0) return facts;
  const checkedPaths = [...(existsSync(root) ? [root] : []), ...(existsSync(secrets) ? ['.env'] : [])];
  return [
    fine(`${checkedPaths.join(' and ')} ${checkedPaths.length > 1 ? 'are' : 'is'} private to this user`),
  ];
}

function entriesOf(root: string): string[] {
  const own = readdirSync(root).map((name) => join(root, name));
  const inner = CHECKED_SUBFOLDERS.map((name) => join(root, name)).filter(existsSync);
  return [...own, ...inner.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))];
}

function examine(path: string): Fact[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return [];
  const uid = process.getuid?.() ?? 0;
  if (stats.uid !== uid && uid !== 0)
    return [
      failure(
        `${path} is owned by user ${stats.uid}, not by ${uid}; svc was probably started as another user before.`,
        `sudo chown -R ${uid} ${path}`,
      ),
    ];
  if ((stats.mode & GROUP_AND_OTHERS) === 0) return [];
  const mode = stats.isDirectory() ? 0o700 : 0o600;
  const actualMode = (stats.mode & 0o777).toString(8);
  const command = `chmod ${mode.toString(8)} ${path}`;
  return [
    warning(
      `${path} has mode ${actualMode}, so other users of this machine may read it.`,
      `svc doctor --fix, or ${command}`,
      () => {
        chmodSync(path, mode);
        return command;
      },
    ),
  ];
}
