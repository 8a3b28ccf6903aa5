import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';

/** Returns a path in a folder whose name is not UTF-8. */
export const nameOfBytes = (folder: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(folder), Buffer.from([0x2f, 0xff, 0xfe])]);

const LONG_NAMES = Array.from({ length: 13 }, () => 'long-'.repeat(50));

/** Nests folders in a folder whose paths are longer than the kernel accepts (4,096 bytes). */
export async function nestBeyondPaths(folder: string): Promise<void> {
  const [outer, inner] = ['outer', 'inner'].map((name) => join(folder, name)) as [string, string];
  for (const path of [outer, inner]) await mkdir(join(path, ...LONG_NAMES), { recursive: true });
  await rename(inner, join(outer, ...LONG_NAMES, 'inner'));
  await rename(outer, join(folder, LONG_NAMES[0]!));
}
