import { readFile, stat } from 'node:fs/promises';

const MAX_MODULE_BYTES = 16 * 1024 * 1024;
/** Matches files that can be analysed. The parser does not support TypeScript. */
const JAVASCRIPT = /\.m?js$/;

/**
 * Returns the exports that static analysis finds in a module. Returns undefined if the list could be incomplete.
 * CommonJS, TypeScript, `export *` and default exports make the list incomplete.
 */
export async function exportsInText(path: string): Promise<string[] | undefined> {
  if (!JAVASCRIPT.test(path) || (await stat(path)).size > MAX_MODULE_BYTES) return undefined;
  const source = await readFile(path, 'utf8');
  const { init, parse } = await import('es-module-lexer');
  await init;
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(source);
  } catch {
    // The syntax error is reported later, when the module runs.
    return undefined;
  }
  const [imports, exports, , isModule] = parsed;
  const names = exports.map(({ n }) => n);
  const exportStarts = new Set(exports.map(({ ss }) => ss));
  const reexportsAll = imports.some(({ ss }) => source.startsWith('export', ss) && !exportStarts.has(ss));
  return !isModule || reexportsAll || names.includes('default') ? undefined : names;
}
