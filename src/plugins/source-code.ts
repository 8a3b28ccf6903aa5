import { readFile } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import type { ManifestV3 } from '../contracts/index.ts';
import { sourceFiles } from './source-stamp.ts';

/** Source texts of a plugin's modules and JSON files, keyed by path relative to the plugin's folder. */
export type SourceCode = Readonly<Record<string, string>>;

/**
 * Maximum size of the source code of one plugin. Services keep the code in memory, so that they can start processes of
 * a version after its files have changed.
 */
export const MAX_CODE_CHARS = 8 * 1024 * 1024;
const MODULE = /\.(?:[cm]?[jt]sx?|json)$/;

/**
 * Reads a plugin's source code, without its dependencies. Returns undefined if the code exceeds `MAX_CODE_CHARS` or a
 * file is missing.
 */
export async function readSourceCode(root: string, manifest: ManifestV3): Promise<SourceCode | undefined> {
  const paths = sourceFiles(root, manifest).filter((file) => MODULE.test(file));
  const files = await Promise.all(paths.map((path) => readOne(root, path)));
  const code: Record<string, string> = {};
  let chars = 0;
  for (const { name, text } of files) {
    // npm's lock file in `node_modules` is not source code. The file is listed only for the check for changes.
    if (name.startsWith('node_modules/')) continue;
    if (text === undefined) return undefined;
    chars += text.length;
    if (chars > MAX_CODE_CHARS) return undefined;
    code[name] = text;
  }
  return code;
}

async function readOne(root: string, path: string): Promise<{ name: string; text: string | undefined }> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return { name: relative(root, path).split(sep).join('/'), text };
}
