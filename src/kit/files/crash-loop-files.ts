import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** Folder within the data folder in which the supervisor leaves the crash loops of services for the gateway. */
export const CRASH_LOOP_FOLDER = 'crash-loops';
const SUFFIX = '.json';

/** A crash loop of a service, which the gateway reports when it runs. @spec docs/alerts.md */
export const CrashLoop = z.object({
  service: z.string(),
  /** Id of the node. */
  node: z.string(),
  crashes: z.number(),
  reason: z.string(),
  /** Epoch ms. */
  at: z.number(),
});
export type CrashLoop = z.infer<typeof CrashLoop>;

export interface FoundCrashLoop extends CrashLoop {
  file: string;
}

export const crashLoopFile = (dataDir: string, name: string): string =>
  join(dataDir, CRASH_LOOP_FOLDER, `${name}${SUFFIX}`);

/** Returns the recorded crash loops, oldest first. Unreadable files are deleted, because no later read can succeed. */
export async function readCrashLoops(dataDir: string): Promise<FoundCrashLoop[]> {
  const folder = join(dataDir, CRASH_LOOP_FOLDER);
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const found: FoundCrashLoop[] = [];
  for (const name of names.filter((each) => each.endsWith(SUFFIX)).sort()) {
    const file = join(folder, name);
    const parsed = CrashLoop.safeParse(jsonOf(await readFile(file, 'utf8')));
    if (parsed.success) found.push({ ...parsed.data, file });
    else await rm(file, { force: true });
  }
  return found;
}

export async function removeCrashLoop(file: string): Promise<void> {
  await rm(file, { force: true });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
