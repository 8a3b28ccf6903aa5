import { readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isInside } from '../../../plugins/index.ts';

/** Size limit of schema files, which the service reads into its own memory for API descriptions. */
const SCHEMA_FILE_BYTES = 4 * 1024 * 1024;

/**
 * Reads a JSON file of a plugin. Rejects files outside the plugin's folder, and anything that is not a regular file.
 */
export async function readPluginJson(root: string, file: string): Promise<unknown> {
  const folder = await realpath(root);
  const path = await realpath(join(folder, file));
  if (!isInside(folder, path)) throw new Error(`${file} is outside of the plugin's folder`);
  const found = await stat(path);
  // Only regular files are read, because reading a pipe would block forever.
  if (!found.isFile() || found.size > SCHEMA_FILE_BYTES)
    throw new Error(`${file} is not a file of at most ${SCHEMA_FILE_BYTES} bytes`);
  return JSON.parse(await readFile(path, 'utf8'));
}
