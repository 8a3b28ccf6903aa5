import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Fact, failure, fine, type Patient, warning } from './check.ts';

/** Of the data folder: folders whose own files are looked at too. */
const LOOKED_INTO = ['run', 'logs'];
const OTHERS = 0o077;

/** What is in the data folder is its owner's alone, and so is the `.env`. */
export function checkModes({ folder, loaded }: Patient): Fact[] {
  const { root } = folder;
  const secrets = join(loaded.projectDir, '.env');
  if (!existsSync(root) && !existsSync(secrets)) return [fine('no data yet')];
  const paths = [
    ...(existsSync(root) ? [root, ...entriesOf(root)] : []),
    ...(existsSync(secrets) ? [secrets] : []),
  ];
  const facts = paths.flatMap((path) => examine(path));
  if (facts.length > 0) return facts;
  const looked = [...(existsSync(root) ? [root] : []), ...(existsSync(secrets) ? ['.env'] : [])];
  return [fine(`${looked.join(' and ')} ${looked.length > 1 ? 'are' : 'is'} for this user alone`)];
}

function entriesOf(root: string): string[] {
  const own = readdirSync(root).map((name) => join(root, name));
  const inner = LOOKED_INTO.map((name) => join(root, name)).filter(existsSync);
  return [...own, ...inner.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))];
}

function examine(path: string): Fact[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return [];
  const uid = process.getuid?.() ?? 0;
  if (stats.uid !== uid && uid !== 0)
    return [
      failure(
        `${path} belongs to user ${stats.uid}, not to ${uid}: it was started as another user once.`,
        `sudo chown -R ${uid} ${path}`,
      ),
    ];
  if ((stats.mode & OTHERS) === 0) return [];
  const right = stats.isDirectory() ? 0o700 : 0o600;
  const is = (stats.mode & 0o777).toString(8);
  const command = `chmod ${right.toString(8)} ${path}`;
  return [
    warning(
      `${path} has mode ${is}: others on this machine may read it.`,
      `svc doctor --fix, or ${command}`,
      () => {
        chmodSync(path, right);
        return command;
      },
    ),
  ];
}
