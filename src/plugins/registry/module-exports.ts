import { readFile, stat } from 'node:fs/promises';

/** Maximum size of a module that is analysed. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Matches files whose exports static analysis finds completely. TypeScript and CommonJS files are not among them. */
const JAVASCRIPT = /\.m?js$/;

/**
 * Returns the exports of a module by static analysis. Undefined if the analysis cannot find all: not an ES module,
 * TypeScript, a default export (whose keys count too), or `export * from`.
 */
export async function exportsInText(path: string): Promise<string[] | undefined> {
  if (!JAVASCRIPT.test(path) || (await stat(path)).size > MAX_BYTES) return undefined;
  const source = await readFile(path, 'utf8');
  const { init, parse } = await import('es-module-lexer');
  await init;
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(source);
  } catch {
    // Running the module reports the syntax error.
    return undefined;
  }
  const [imports, exports, , isModule] = parsed;
  const names = exports.map(({ n }) => n);
  const begins = new Set(exports.map(({ ss }) => ss));
  const passesOn = imports.some(({ ss }) => source.startsWith('export', ss) && !begins.has(ss));
  return !isModule || passesOn || names.includes('default') ? undefined : names;
}
