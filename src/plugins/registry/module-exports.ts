import { readFile, stat } from 'node:fs/promises';

/** Beyond this a module is not looked into. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Files whose every export the lexer sees; TypeScript and CommonJS can have more than their text shows. */
const JAVASCRIPT = /\.m?js$/;

/**
 * The names that a module's text exports, without running it. Undefined where the text alone does not tell: no ES
 * module, TypeScript, a default export (whose own keys count too), or `export * from`.
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
    // What is wrong with it is told by whoever runs it.
    return undefined;
  }
  const [imports, exports, , isModule] = parsed;
  const names = exports.map(({ n }) => n);
  const begins = new Set(exports.map(({ ss }) => ss));
  const passesOn = imports.some(({ ss }) => source.startsWith('export', ss) && !begins.has(ss));
  return !isModule || passesOn || names.includes('default') ? undefined : names;
}
