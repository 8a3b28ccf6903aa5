import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { draftPathOf } from './draft-path.ts';

/**
 * Replaces a file atomically, even if the process crashes. Only the owner has access to the file and to any created
 * folders.
 */
export async function replacePrivateFile(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = draftPathOf(file);
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
    await handle.close();
    await rename(draft, file);
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(draft, { force: true });
    throw error;
  }
}
