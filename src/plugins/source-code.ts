import { readFile } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import type { ManifestV3 } from '../contracts/index.ts';
import { sourceFiles } from './source-stamp.ts';

/** Texts of a plugin's modules and JSON files, by their paths below its folder with `/`. */
export type SourceCode = Readonly<Record<string, string>>;

/** Of one plugin: services hold it in memory, and send it to each process of a kept version. */
export const MAX_CODE_CHARS = 8 * 1024 * 1024;
const MODULE = /\.(?:[cm]?[jt]sx?|json)$/;

/** Reads what a plugin's folder holds of its own code. Undefined for more than MAX_CODE_CHARS, or where a file is gone. */
export async function readSourceCode(root: string, manifest: ManifestV3): Promise<SourceCode | undefined> {
  const paths = sourceFiles(root, manifest).filter((file) => MODULE.test(file));
  const files = await Promise.all(paths.map((path) => readOne(root, path)));
  const code: Record<string, string> = {};
  let chars = 0;
  for (const { name, text } of files) {
    // npm's record of an installation is watched, and is no code.
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
