import { readFileSync } from 'node:fs';
import module from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isInside } from '../inside.ts';

/** A position in the plugin's source. Line and column start at 1. */
export interface Place {
  /** Path of the file, relative to the plugin's folder. */
  file: string;
  line: number;
  column: number;
  /** Text of the source line, trimmed. */
  text: string;
}

const { stripTypeScriptTypes } = module;
const TEXT_CHARS = 200;
const SOURCE = /\.[cm]?[jt]s$/;
/** Matches the start of a stack with a path or URL, a line number, the source line and a caret. */
const HEAD = /^((?:file:\/\/)?\/[^\n]*?):(\d+)\n(?:[^\n]*\n){1,5}?( *)\^/;
const FRAME = /\(?((?:file:\/\/)?\/[^()\n]*?):(\d+):(\d+)\)?$/;

/** Formats a position in the form `src/index.ts:12:9`. */
export function placeText({ file, line, column }: Place): string {
  return `${file}:${line}:${column}`;
}

/** Returns the position of an error in the plugin's source code, found in the source-mapped stack. */
export function placeOf(thrown: unknown, root: string): Place | undefined {
  const stack = stackOf(thrown);
  const head = HEAD.exec(stack);
  if (head) {
    const place = placeAt(root, head[1]!, Number(head[2]), head[3]!.length + 1);
    if (place) return place;
  }
  for (const row of stack.split('\n')) {
    if (!row.startsWith('    at ')) continue;
    const frame = FRAME.exec(row);
    const place = frame && placeAt(root, frame[1]!, Number(frame[2]), Number(frame[3]));
    if (place) return place;
  }
  return undefined;
}

/**
 * Returns the position of an error from loading a module. V8 reports no position for a syntax error in an ES module.
 * The files in `resolved` are therefore parsed again, starting with the last file.
 */
export function loadPlaceOf(thrown: unknown, root: string, resolved: readonly string[]): Place | undefined {
  const missing = missingImport(thrown, root);
  if (missing) return missing;
  const isSyntax = thrown instanceof SyntaxError && !HEAD.test(stackOf(thrown));
  if (!isSyntax) return placeOf(thrown, root);
  for (const url of resolved.toReversed()) {
    const place = syntaxPlace(url, root);
    if (place) return place;
  }
  return undefined;
}

/** Finds a syntax error in JavaScript with the TypeScript parser, because the TypeScript parser reports positions. */
function syntaxPlace(url: string, root: string): Place | undefined {
  const path = pathOf(url);
  if (!path || !SOURCE.test(path) || !isInside(root, path)) return undefined;
  try {
    stripTypeScriptTypes(readFileSync(path, 'utf8'), { sourceUrl: url });
    return undefined;
  } catch (error) {
    return placeOf(error, root);
  }
}

function missingImport(thrown: unknown, root: string): Place | undefined {
  const { code, message } = thrown as { code?: unknown; message?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' || typeof message !== 'string') return undefined;
  const [, wanted, from] = /'([^']+)' imported from (\S.*)$/.exec(message) ?? [];
  const path = from && pathOf(from);
  if (!wanted || !path || !isInside(root, path)) return undefined;
  // The error message of a failed relative import contains an absolute path. Only the file name occurs in the source
  // code, so the search uses the file name.
  const name = wanted.startsWith('/') ? wanted.slice(wanted.lastIndexOf('/') + 1) : wanted;
  const rows = linesOf(path);
  const index = rows.findIndex(
    (row) => /\b(?:import|export|require)\b|\bfrom\b/.test(row) && row.includes(name),
  );
  return index === -1 ? undefined : placeAt(root, path, index + 1, rows[index]!.indexOf(name) + 1);
}

function placeAt(root: string, named: string, line: number, column: number): Place | undefined {
  const path = pathOf(named);
  if (!path || !isInside(root, path)) return undefined;
  const file = relative(root, path);
  if (file.split('/').includes('node_modules')) return undefined;
  return { file, line, column, text: (linesOf(path)[line - 1] ?? '').trim().slice(0, TEXT_CHARS) };
}

function pathOf(named: string): string | undefined {
  if (!named.startsWith('file:')) return named.startsWith('/') ? named : undefined;
  try {
    return fileURLToPath(named);
  } catch {
    return undefined;
  }
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    return [];
  }
}

function stackOf(thrown: unknown): string {
  try {
    const { stack } = thrown as { stack?: unknown };
    return typeof stack === 'string' ? stack : '';
  } catch {
    return '';
  }
}
