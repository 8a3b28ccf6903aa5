import { readFile } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import type { ManifestV3 } from '../contracts/index.ts';
import { sourceFiles } from './source-stamp.ts';

/** Texts of a plugin's modules and JSON files. The keys are paths in the plugin's folder, separated by `/`. */
export type SourceCode = Readonly<Record<string, string>>;

/** Maximum size of a plugin's code, which services keep in memory and send to each process of a replaced version. */
export const MAX_CODE_CHARS = 8 * 1024 * 1024;
const MODULE = /\.(?:[cm]?[jt]sx?|json)$/;

/** Reads a plugin's code without dependencies. Returns undefined above MAX_CODE_CHARS, or if a file is missing. */
export async function readSourceCode(root: string, manifest: ManifestV3): Promise<SourceCode | undefined> {
  const paths = sourceFiles(root, manifest).filter((file) => MODULE.test(file));
  const files = await Promise.all(paths.map((path) => readOne(root, path)));
  const code: Record<string, string> = {};
  let chars = 0;
  for (const { name, text } of files) {
    // Skips npm's lock file, which is watched but is not code.
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
