import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { draftPathOf } from './draft-path.ts';

/**
 * Replaces a file atomically, so that readers see either the old or the new text, even after a crash. The file and
 * missing folders are created for the owner only.
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
