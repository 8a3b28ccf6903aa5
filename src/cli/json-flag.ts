import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { messageOf } from '../kit/errors/errors.ts';
import { UsageError } from './parse-args.ts';

/** Parses a JSON flag: JSON text, `@<file>`, or `-` for stdin. Throws UsageError for invalid JSON. */
export async function readJson(flag: string, given: string, cwd: string): Promise<unknown> {
  const isStdin = given === '-' || given === '@-';
  const file = !isStdin && given.startsWith('@') ? given.slice(1) : undefined;
  const source = isStdin ? `${flag}: stdin` : file === undefined ? flag : `${flag}: ${file}`;
  try {
    const json = isStdin
      ? await text(process.stdin)
      : file === undefined
        ? given
        : await readFile(resolve(cwd, file), 'utf8');
    return JSON.parse(json);
  } catch (error) {
    throw new UsageError(`${source} is not valid JSON: ${messageOf(error)}`, {
      hint: `${flag} '{"name": "value"}', @<file>, or - for stdin`,
    });
  }
}
