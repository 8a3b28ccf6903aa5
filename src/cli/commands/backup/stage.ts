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
import { isDeepStrictEqual } from 'node:util';
import { codeOf, PlatformError } from '../../../kit/errors/errors.ts';
import { INSTANCE_FILE } from '../../../kit/files/instance-id.ts';
import { DATA_FILES } from '../../../store/sqlite/data-files.ts';
import { openSnapshot, type Snapshot } from '../../../store/sqlite/snapshot.ts';
import {
  isJournalFile,
  JOURNAL_FOLDER,
  journalInOrder,
  readWhileWritten,
} from '../../../store/sqlite/svc/journal/files.ts';
import type { CurrentMasterKey } from '../../../supervisor/master-key.ts';
import { type BackupFile, KEY_FILES } from './manifest.ts';

export interface StageOptions {
  dataDir: string;
  /** Empty target folder. Hard links require that this folder is on the file system of the data folder. */
  stage: string;
  withKeys: boolean;
  withTelemetry: boolean;
  masterKey: () => CurrentMasterKey | null;
}

export interface Staged {
  files: BackupFile[];
  schemas: Record<string, number>;
  /** The master keys that decrypt the secrets in the copy of `svc.db`. */
  masterKey: CurrentMasterKey | null;
  /** Paths of links and devices, which a backup does not include. */
  skipped: string[];
}

interface DatabaseSnapshot {
  name: string;
  snapshot: Snapshot;
}

/**
 * Maximum number of snapshots per backup. A snapshot is repeated if the master key changed during the snapshot. One key
 * rotation changes `keys.json` twice.
 */
const MAX_KEY_CHANGES = 5;

/**
 * Subfolders of the data folder that a restored platform does not need. Deliveries in `spill` move to PostgreSQL when it
 * answers again; a copy of the folder would run them twice.
 */
const TRANSIENT_FOLDERS = ['run', 'logs', 'spill'];
/**
 * Matches temporary files at the top of the data folder and in the write-ahead log folder. In other folders, such names
 * can belong to plugins, for example `yarn.lock`.
 */
const TRANSIENT_FILES = /^(?:vectors-index\.db)$|(?:\.lock|\.owner|\.new|\.spare|-wal|-shm|-journal)$/;

/**
 * Creates a consistent copy of the data folder. A file is written before its database row and deleted after its
 * database row. Linking the files both before and after the database snapshot therefore includes the file of each row.
 */
export async function stageData(options: StageOptions): Promise<Staged> {
  const skipped = new Set<string>();
  copyJournal(options);
  linkFiles(options, skipped);
  const { snapshots, masterKey } = snapshotWithKeys(options, skipped);
  try {
    for (const { name, snapshot } of snapshots) await snapshot.copyTo(join(options.stage, name));
  } finally {
    closeAll(snapshots);
  }
  const schemas = Object.fromEntries(snapshots.map(({ name, snapshot }) => [name, snapshot.schema]));
  return { files: await describeFiles(options.stage), schemas, masterKey, skipped: [...skipped] };
}

/**
 * Takes the snapshot and links the files. Retries if the master key changed, because the linked `keys.json` might not
 * decrypt the snapshot. Throws CONFLICT after MAX_KEY_CHANGES attempts.
 */
function snapshotWithKeys(
  options: StageOptions,
  skipped: Set<string>,
): { snapshots: DatabaseSnapshot[]; masterKey: CurrentMasterKey | null } {
  for (let attempt = 1; attempt <= MAX_KEY_CHANGES; attempt++) {
    const masterKey = options.masterKey();
    const snapshots = openSnapshots(options);
    try {
      linkFiles(options, skipped);
      if (isDeepStrictEqual(options.masterKey(), masterKey)) return { snapshots, masterKey };
    } catch (error) {
      closeAll(snapshots);
      throw error;
    }
    closeAll(snapshots);
  }
  throw new PlatformError(
    'CONFLICT',
    `The master key changed ${MAX_KEY_CHANGES} times during the backup. No archive was written.`,
    { details: { hint: 'Wait until svc keys rotate has ended, and run svc backup again.' } },
  );
}

function openSnapshots({ dataDir, withTelemetry }: StageOptions): DatabaseSnapshot[] {
  const snapshots: DatabaseSnapshot[] = [];
  try {
    for (const { name, migrations } of DATA_FILES) {
      if (name === 'telemetry.db' && !withTelemetry) continue;
      const file = join(dataDir, name);
      if (existsSync(file)) snapshots.push({ name, snapshot: openSnapshot(file, migrations) });
    }
    return snapshots;
  } catch (error) {
    closeAll(snapshots);
    throw error;
  }
}

function closeAll(snapshots: readonly DatabaseSnapshot[]): void {
  for (const { snapshot } of snapshots) snapshot.close();
}

/**
 * Copies acknowledged deliveries that are not yet in a database, oldest file first. Must run before the database
 * snapshot, because deliveries move from these files to the database.
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

/**
 * Yields the files of a folder before the files of its subfolders. The list of plugins is thus copied before the
 * plugins.
 */
function* walk(root: string, below = ''): Generator<{ name: string; entry: Dirent }> {
  const entries = readdirSync(join(root, below), { withFileTypes: true });
  for (const entry of entries.filter((one) => !one.isDirectory())) {
    // Databases and write-ahead log files change in place, so they are not copied together with the other files.
    const isJournal = below === JOURNAL_FOLDER && isJournalFile(entry.name);
    const isDatabase = below === '' && DATA_FILES.some(({ name }) => name === entry.name);
    const isTransient = ['', JOURNAL_FOLDER].includes(below) && TRANSIENT_FILES.test(entry.name);
    const isNodeId = below === '' && entry.name === INSTANCE_FILE;
    if (!isDatabase && !isJournal && !isTransient && !isNodeId)
      yield { name: join(below, entry.name), entry };
  }
  for (const entry of entries.filter((one) => one.isDirectory())) {
    if (below === '' && TRANSIENT_FOLDERS.includes(entry.name)) continue;
    yield* walk(root, join(below, entry.name));
  }
}

/**
 * Creates a hard link, which keeps the content if the original is deleted. Copies the file if hard links are not
 * supported.
 */
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
