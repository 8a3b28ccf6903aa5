import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  createReadStream,
  type Dirent,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { codeOf } from '../../../kit/errors.ts';
import { DATA_FILES } from '../../../store/sqlite/data-files.ts';
import {
  isJournalFile,
  JOURNAL_FOLDER,
  journalInOrder,
  readWhileWritten,
} from '../../../store/sqlite/journal/files.ts';
import { openSnapshot, type Snapshot } from '../../../store/sqlite/snapshot.ts';
import { type BackupFile, KEY_FILES } from './manifest.ts';

export interface StageOptions {
  dataDir: string;
  /** An empty folder on the same file system. */
  stage: string;
  withKeys: boolean;
  withTelemetry: boolean;
}

export interface Staged {
  files: BackupFile[];
  schemas: Record<string, number>;
  /** Links and devices, which a backup does not hold. */
  skipped: string[];
}

/** Of the data folder; what belongs to one run of the platform. */
const TRANSIENT_FOLDERS = ['run', 'logs'];
/** In the data folder and its journal alone: a plugin's `yarn.lock` is a part of what its integrity is of. */
const TRANSIENT_FILES = /(?:\.lock|\.owner|\.new|\.spare|-wal|-shm|-journal)$/;

/**
 * Puts a consistent copy of the data folder together: every database as it was at one moment, and every file that
 * its rows may name. Files are linked before that moment and after it, as they are written before the row that names
 * them and removed after it; no file is ever changed in place.
 */
export async function stageData(options: StageOptions): Promise<Staged> {
  const { dataDir, stage, withTelemetry } = options;
  const skipped = new Set<string>();
  copyJournal(options);
  linkFiles(options, skipped);
  const snapshots: Array<{ name: string; snapshot: Snapshot }> = [];
  try {
    for (const { name, migrations } of DATA_FILES) {
      if (name === 'telemetry.db' && !withTelemetry) continue;
      const file = join(dataDir, name);
      if (existsSync(file)) snapshots.push({ name, snapshot: openSnapshot(file, migrations) });
    }
    linkFiles(options, skipped);
    for (const { name, snapshot } of snapshots) await snapshot.copyTo(join(stage, name));
  } finally {
    for (const { snapshot } of snapshots) snapshot.close();
  }
  const schemas = Object.fromEntries(snapshots.map(({ name, snapshot }) => [name, snapshot.schema]));
  return { files: await describeFiles(stage), schemas, skipped: [...skipped] };
}

/**
 * What is acknowledged and not in a database yet. Copied while it is written to: before the databases' moment, so that
 * what has left it meanwhile is in them; the oldest file first, so that no copy begins behind the end of the one before.
 */
function copyJournal({ dataDir, stage }: StageOptions): void {
  const target = join(stage, JOURNAL_FOLDER);
  for (const { file } of journalInOrder(join(dataDir, JOURNAL_FOLDER))) {
    const bytes = readWhileWritten(file);
    if (bytes.length === 0) continue;
    mkdirSync(target, { recursive: true, mode: 0o700 });
    writeFileSync(join(target, basename(file)), bytes, { mode: 0o600 });
  }
}

function linkFiles({ dataDir, stage, withKeys }: StageOptions, skipped: Set<string>): void {
  for (const { name, entry } of walk(dataDir)) {
    if (!withKeys && KEY_FILES.includes(name)) continue;
    if (entry.isFile()) linkOrCopy(join(dataDir, name), join(stage, name));
    else skipped.add(name);
  }
}

/** A folder's own files come before its folders: a list of plugins is read before the plugins that it names. */
function* walk(root: string, below = ''): Generator<{ name: string; entry: Dirent }> {
  const entries = readdirSync(join(root, below), { withFileTypes: true });
  for (const entry of entries.filter((one) => !one.isDirectory())) {
    // The journal is copied.
    const isJournal = below === JOURNAL_FOLDER && isJournalFile(entry.name);
    const isDatabase = below === '' && DATA_FILES.some(({ name }) => name === entry.name);
    const isTransient = ['', JOURNAL_FOLDER].includes(below) && TRANSIENT_FILES.test(entry.name);
    if (!isDatabase && !isJournal && !isTransient) yield { name: join(below, entry.name), entry };
  }
  for (const entry of entries.filter((one) => one.isDirectory())) {
    if (below === '' && TRANSIENT_FOLDERS.includes(entry.name)) continue;
    yield* walk(root, join(below, entry.name));
  }
}

/** A link keeps the content when the original is removed or replaced. File systems without links get a copy. */
function linkOrCopy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  rmSync(to, { force: true });
  try {
    linkSync(from, to);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    copyFileSync(from, to);
    chmodSync(to, statSync(from).mode & 0o777);
  }
}

async function describeFiles(stage: string): Promise<BackupFile[]> {
  const files: BackupFile[] = [];
  const names = readdirSync(stage, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  for (const path of names.sort()) {
    const { size, mode } = statSync(path);
    const name = path
      .slice(stage.length + 1)
      .split('\\')
      .join('/');
    files.push({ name, size, mode: mode & 0o777, sha256: await sha256Of(path) });
  }
  return files;
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
