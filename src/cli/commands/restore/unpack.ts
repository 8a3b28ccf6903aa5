import { createHash } from 'node:crypto';
import { mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { archiveRefused, readTarGz, type TarEntry, textOf } from '../../../kit/files/tar/read.ts';
import { storeError } from '../../../store/sqlite/store-error.ts';
import { type BackupFile, BackupManifest, DATA_PREFIX, FORMAT, MANIFEST_NAME } from '../backup/manifest.ts';

const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

/** An archive whose manifest has been read. Callers must unpack or close the archive. */
export interface OpenArchive {
  manifest: BackupManifest;
  /** Unpacks all files into an empty folder. Throws if the files differ from the manifest. */
  unpackTo(folder: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a backup and reads its manifest. Throws VALIDATION_ERROR if the file is not an intact backup. Throws
 * VALIDATION_ERROR if the backup format is too new.
 */
export async function openArchive(file: string): Promise<OpenArchive> {
  const entries = readTarGz(file);
  const close = async (): Promise<void> => void (await entries.return(undefined));
  return guarded(file, close, async () => {
    const manifest = await readManifest(entries);
    return {
      manifest,
      unpackTo: (folder) => guarded(file, close, () => unpackAll(manifest, entries, folder)),
      close,
    };
  });
}

/** Runs `work`. If `work` fails, closes the archive and converts the error to a PlatformError. */
async function guarded<T>(file: string, close: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    await close();
    const error = storeError(file, thrown);
    throw error instanceof PlatformError
      ? error
      : archiveRefused(`it cannot be read: ${messageOf(error)}`, error);
  }
}

async function readManifest(entries: AsyncGenerator<TarEntry, undefined>): Promise<BackupManifest> {
  const { value: entry } = await entries.next();
  if (entry?.name !== MANIFEST_NAME || entry.type !== 'file' || entry.size > MAX_MANIFEST_BYTES)
    throw archiveRefused(`it is not a backup of svc: it does not start with ${MANIFEST_NAME}`);
  const parsed = BackupManifest.safeParse(parseJson(await textOf(entry)));
  if (!parsed.success) throw archiveRefused(`its ${MANIFEST_NAME} is incomplete`);
  if (parsed.data.format > FORMAT) {
    throw archiveRefused(
      `it was made by svc ${parsed.data.version}, in a newer format (${parsed.data.format}) than this version reads (${FORMAT})`,
    );
  }
  return parsed.data;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Unpacks the archive. Throws unless the archive contains exactly the files of the manifest, each file once. */
async function unpackAll(
  { files }: BackupManifest,
  entries: AsyncGenerator<TarEntry, undefined>,
  folder: string,
): Promise<void> {
  const expected = new Map(files.map((file) => [DATA_PREFIX + requireInside(file.name), file]));
  for await (const entry of entries) {
    const file = expected.get(entry.name);
    expected.delete(entry.name);
    await unpackFile(requireMatch(entry, file), entry, folder);
  }
  const [missing] = expected.keys();
  if (missing) throw archiveRefused(`${quoted(missing)} is missing`);
}

function requireMatch(entry: TarEntry, file: BackupFile | undefined): BackupFile {
  if (entry.type !== 'file')
    throw archiveRefused(`${quoted(entry.name)} is a ${entry.type}; a backup contains only files`);
  if (!file)
    throw archiveRefused(`${quoted(entry.name)} is missing in the manifest, or occurs twice in the archive`);
  if (entry.size !== file.size)
    throw archiveRefused(`${quoted(entry.name)} has another size than in the manifest`);
  return file;
}

async function unpackFile(
  { name, sha256, mode }: BackupFile,
  { content }: TarEntry,
  folder: string,
): Promise<void> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const hash = createHash('sha256');
  // The `wx` flag makes `open` fail if the path exists. An existing path can be a link, or a file whose name differs
  // only in case.
  const target = await open(path, 'wx', mode & 0o755);
  try {
    for await (const chunk of content) {
      hash.update(chunk);
      await target.writeFile(chunk);
    }
    await target.sync();
  } finally {
    await target.close();
  }
  if (hash.digest('hex') !== sha256) throw archiveRefused(`${quoted(name)} is damaged: its digest differs`);
}

/** Returns the name of a file in the archive. Throws if the name could lead outside of the target folder. */
function requireInside(name: string): string {
  const parts = name.split('/');
  const isUnsafe =
    /[\0\\]/.test(name) || /^[A-Za-z]:/.test(name) || parts.some((part) => ['', '.', '..'].includes(part));
  if (isUnsafe) throw archiveRefused(`${quoted(name)} points outside the archive`);
  return name;
}

const quoted = (name: string): string => JSON.stringify(name.slice(0, 200));
