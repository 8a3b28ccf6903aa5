import { createHash } from 'node:crypto';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { integrityOf, packFolder, unpackFolder } from '../../../plugins/index.ts';
import type { ObjectStore } from '../../../store/ports/index.ts';

/** Tenant ids start with a letter or digit, so no plugin can read or write this scope. */
export const PACKAGE_SCOPE = { tenant: '$svc', namespace: 'packages' } as const;
/** Maximum bytes of one part of a package, which is read and written as a whole. */
const PART_BYTES = 4 * 1024 * 1024;

const INDEXES = 'index/';
const PARTS = 'part/';
const PAGE = 1000;

/** Digests of a package's parts, in order. */
const Index = z.array(z.string().regex(/^[0-9a-f]{128}$/)).min(1);

/**
 * Packages of installed plugins in the object store. Each package is divided into parts. The key of a part is its
 * SHA-512 digest, and the key of an index of parts is the digest of the plugin's files.
 */
export class Packages {
  readonly #stores: readonly ObjectStore[];
  readonly #partBytes: number;

  /** Writes go to the first store. Reads use the other stores for packages that the first store lacks. */
  constructor(stores: readonly [ObjectStore, ...ObjectStore[]], partBytes = PART_BYTES) {
    this.#stores = stores;
    this.#partBytes = Math.min(partBytes, PART_BYTES);
  }

  /** Stores the files of a folder. The index is written last, so that an interrupted call leaves no usable package. */
  async keep(folder: string, integrity: string): Promise<void> {
    for await (const { key, data } of packageObjects(folder, integrity, this.#partBytes))
      await this.#stores[0]!.write(PACKAGE_SCOPE, key, data);
  }

  /**
   * Unpacks a package into an empty folder. Throws INTEGRITY_MISMATCH if stored bytes were changed, and NOT_FOUND if the
   * package is missing.
   */
  async unpack(integrity: string, folder: string): Promise<void> {
    const index = await this.#index(integrity);
    await unpackFolder(this.#parts(index), folder);
    if ((await integrityOf(folder)) !== integrity) throw changed('its files');
  }

  /** Deletes packages that no plugin uses, and parts of interrupted uploads. Must not run during an upload. */
  async prune(used: ReadonlySet<string>): Promise<void> {
    const kept = new Set<string>();
    for (const integrity of used) {
      kept.add(indexKey(integrity));
      for (const digest of await this.#index(integrity).catch(unlessUnusable)) kept.add(PARTS + digest);
    }
    for (const store of this.#stores) {
      for (const key of await keysOf(store)) if (!kept.has(key)) await store.delete(PACKAGE_SCOPE, key);
    }
  }

  async #index(integrity: string): Promise<string[]> {
    const found = await this.#read(indexKey(integrity));
    if (!found)
      throw new PlatformError('NOT_FOUND', 'The package is missing in the object store. Install it again.');
    const index = Index.safeParse(parsed(found));
    if (!index.success) throw changed('its index');
    return index.data;
  }

  async *#parts(index: readonly string[]): AsyncGenerator<Uint8Array> {
    for (const digest of index) {
      const data = await this.#read(PARTS + digest);
      if (!data || digestOf(data) !== digest) throw changed('its archive');
      yield data;
    }
  }

  async #read(key: string): Promise<Uint8Array | undefined> {
    for (const store of this.#stores) {
      const found = await store.read(PACKAGE_SCOPE, key);
      if (found) return found.data;
    }
    return undefined;
  }
}

/** Packs all files of a folder. Yields the parts of the package, and then its index. */
export async function* packageObjects(
  folder: string,
  integrity: string,
  partBytes = PART_BYTES,
): AsyncGenerator<{ key: string; data: Buffer }> {
  const index: string[] = [];
  for await (const data of slicesOf(
    packFolder(folder, () => false),
    partBytes,
  )) {
    const digest = digestOf(data);
    index.push(digest);
    yield { key: PARTS + digest, data };
  }
  yield { key: indexKey(integrity), data: Buffer.from(JSON.stringify(index)) };
}

/** Joins and divides chunks, so that each slice except the last one has `bytes` bytes. */
async function* slicesOf(chunks: AsyncIterable<Buffer>, bytes: number): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    waiting.push(chunk);
    length += chunk.length;
    if (length < bytes) continue;
    let rest: Buffer = Buffer.concat(waiting);
    for (; rest.length >= bytes; rest = rest.subarray(bytes)) yield rest.subarray(0, bytes);
    waiting = [rest];
    length = rest.length;
  }
  if (length > 0) yield Buffer.concat(waiting);
}

/** Returns the key of a package's index. `integrity` is the digest of the plugin's files. */
function indexKey(integrity: string): string {
  return INDEXES + Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
}

async function keysOf(store: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for (;;) {
    const page = await store.list(PACKAGE_SCOPE, { prefix: '', after: keys.at(-1), limit: PAGE });
    keys.push(...page.map(({ key }) => key));
    if (page.length < PAGE) return keys;
  }
}

function digestOf(data: Uint8Array): string {
  return createHash('sha512').update(data).digest('hex');
}

function parsed(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Returns no parts for a missing or changed index. Other failures, such as an unreachable bucket, are thrown. */
function unlessUnusable(error: unknown): string[] {
  if (error instanceof PlatformError && ['NOT_FOUND', 'INTEGRITY_MISMATCH'].includes(error.code)) return [];
  throw error;
}

function changed(what: string): PlatformError {
  return new PlatformError(
    'INTEGRITY_MISMATCH',
    `The package in the object store was changed: ${what} differ from the installed ones. Install it again.`,
  );
}
