import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { archiveRefused } from '../../../kit/files/tar/header.ts';
import { readTar, type TarEntry, type TarReader } from '../../../kit/files/tar/read.ts';
import { storeError } from '../../../store/sqlite/store-error.ts';
import { type BackupFile, BackupManifest, DATA_PREFIX, FORMAT, MANIFEST_NAME } from '../backup/manifest.ts';

const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

/** An archive with its manifest read. Must be unpacked or closed. */
export interface OpenArchive {
  manifest: BackupManifest;
  /** Unpacks into an empty folder. Throws if the content differs from the manifest. */
  unpackTo(folder: string): Promise<void>;
  close(): void;
}

/** Throws VALIDATION_ERROR for a damaged archive, a newer format, or a file that is not a backup. */
export async function openArchive(file: string): Promise<OpenArchive> {
  const stream = createReadStream(file);
  const unzipped = stream.pipe(createGunzip());
  stream.on('error', (error) => unzipped.destroy(error));
  const reader = readTar(unzipped);
  return guarded(file, reader, async () => {
    const manifest = await readManifest(reader);
    return {
      manifest,
      unpackTo: (folder) => guarded(file, reader, () => unpackAll(manifest, reader, folder)),
      close: reader.close,
    };
  });
}

/** Closes the archive on failure and converts the error. */
async function guarded<T>(file: string, reader: TarReader, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    reader.close();
    const error = storeError(file, thrown);
    throw error instanceof PlatformError
      ? error
      : archiveRefused(`it cannot be read: ${messageOf(error)}`, error);
  }
}

async function readManifest(reader: TarReader): Promise<BackupManifest> {
  const entry = await reader.next();
  if (entry?.name !== MANIFEST_NAME || entry.type !== 'file' || entry.size > MAX_MANIFEST_BYTES)
    throw archiveRefused(`it is not a backup of svc: it does not start with ${MANIFEST_NAME}`);
  const parts: Buffer[] = [];
  await reader.copy(entry.size, (chunk) => void parts.push(Buffer.from(chunk)));
  const parsed = BackupManifest.safeParse(parseJson(Buffer.concat(parts).toString('utf8')));
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

/** Requires exactly the files of the manifest, each once. */
async function unpackAll({ files }: BackupManifest, reader: TarReader, folder: string): Promise<void> {
  const expected = new Map(files.map((file) => [DATA_PREFIX + requireInside(file.name), file]));
  for (let entry = await reader.next(); entry; entry = await reader.next()) {
    const file = expected.get(entry.name);
    expected.delete(entry.name);
    await unpackFile(requireMatch(entry, file), reader, folder);
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
  { name, size, sha256, mode }: BackupFile,
  reader: TarReader,
  folder: string,
): Promise<void> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const hash = createHash('sha256');
  // `wx` prevents writing through an existing link, or a file whose name differs in case only.
  const target = await open(path, 'wx', mode & 0o755);
  try {
    await reader.copy(size, async (chunk) => {
      hash.update(chunk);
      await target.writeFile(chunk);
    });
    await target.sync();
  } finally {
    await target.close();
  }
  if (hash.digest('hex') !== sha256) throw archiveRefused(`${quoted(name)} is damaged: its digest differs`);
}

/** Returns the name if it stays inside the folder on any operating system. */
function requireInside(name: string): string {
  const parts = name.split('/');
  const isUnsafe =
    /[\0\\]/.test(name) || /^[A-Za-z]:/.test(name) || parts.some((part) => ['', '.', '..'].includes(part));
  if (isUnsafe) throw archiveRefused(`${quoted(name)} points outside the archive`);
  return name;
}

const quoted = (name: string): string => JSON.stringify(name.slice(0, 200));
