import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';

export interface StudioFile {
  plain: Buffer;
  /** The file compressed with Brotli. Undefined if that does not make the file smaller. */
  brotli: Buffer | undefined;
}

/**
 * The built files of the studio. All are read at the first request, so that a new build beside a running gateway does
 * not mix two versions.
 */
export class StudioFiles {
  readonly #folder: string;
  #reading: Promise<ReadonlyMap<string, StudioFile>> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the files by their paths in the folder. Rejects if a file is damaged or replaced during the read. */
  read(): Promise<ReadonlyMap<string, StudioFile>> {
    this.#reading ??= this.#readAll();
    return this.#reading;
  }

  async #readAll(): Promise<ReadonlyMap<string, StudioFile>> {
    let files: ReadonlyMap<string, StudioFile> | undefined;
    try {
      files = await readFiles(this.#folder);
      return files;
    } finally {
      // The next request reads the folder again and finds a later or repaired build.
      if (!files?.size) this.#reading = undefined;
    }
  }
}

async function readFiles(folder: string): Promise<ReadonlyMap<string, StudioFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  return new Map(await Promise.all(names.map((name) => readOne(folder, name))));
}

/** Reads a file. A build contains a file compressed if that makes it smaller. */
async function readOne(folder: string, name: string): Promise<[string, StudioFile]> {
  const content = await readFile(join(folder, name));
  if (!name.endsWith('.br')) return [name, { plain: content, brotli: undefined }];
  const plain = await promisify(brotliDecompress)(content);
  return [name.slice(0, -'.br'.length), { plain, brotli: content }];
}
