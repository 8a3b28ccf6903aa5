import type { LoadHookSync } from 'node:module';
import { extname, posix } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compileFunction } from 'node:vm';
import type { SourceCode } from '../source-code.ts';

type Loaded = ReturnType<LoadHookSync>;

/** Path suffixes that `require` tries, in this order. */
const REQUIRED = ['', '.js', '.json', '/index.js'];

/**
 * Retained modules of a plugin version whose files were edited later. The runner loads these modules instead of the
 * files on disk.
 */
export class KeptCode {
  readonly #files: ReadonlyMap<string, string>;
  readonly #rootUrl: string;

  constructor(root: string, code: SourceCode) {
    this.#files = new Map(Object.entries(code));
    this.#rootUrl = `${pathToFileURL(root).href}/`;
  }

  /** Returns whether the retained code contains the module at this absolute path. */
  has(path: string): boolean {
    return this.#files.has(this.#nameOf(pathToFileURL(path).href) ?? '');
  }

  /** Returns the URL of a module in the retained code. The module's file can be missing on disk. */
  resolve(specifier: string, parentUrl: string | undefined): string | undefined {
    if (!/^(?:\.{0,2}\/|file:)/.test(specifier)) return undefined;
    const url = URL.parse(specifier, parentUrl ?? this.#rootUrl)?.href;
    return REQUIRED.map((end) => `${url}${end}`).find((one) => this.#files.has(this.#nameOf(one) ?? ''));
  }

  load(url: string): Loaded | undefined {
    const name = this.#nameOf(url);
    const source = name === undefined ? undefined : this.#files.get(name);
    if (name === undefined || source === undefined) return undefined;
    return { format: this.#formatOf(name, source), source, shortCircuit: true };
  }

  /** Returns the path relative to the plugin's folder. Returns undefined for a URL outside the folder. */
  #nameOf(url: string): string | undefined {
    if (!url.startsWith(this.#rootUrl)) return undefined;
    const { origin, pathname, protocol } = new URL(url);
    const path = fileURLToPath(protocol === 'file:' ? `file://${pathname}` : origin);
    return path.slice(fileURLToPath(this.#rootUrl).length);
  }

  /**
   * Returns the module format by Node's rules. Uses "type" from the stored `package.json`. Without "type", the module's
   * syntax determines the format.
   */
  #formatOf(name: string, source: string): string {
    const [, kind, language] = /^\.([cm]?)([jt])sx?$/.exec(extname(name)) ?? [];
    if (extname(name) === '.json') return 'json';
    const declared = kind === 'm' ? 'module' : kind === 'c' ? 'commonjs' : this.#typeOf(posix.dirname(name));
    const type = declared ?? (isModule(source, language) ? 'module' : 'commonjs');
    return language === 't' ? `${type}-typescript` : type;
  }

  #typeOf(folder: string): string | undefined {
    const text = this.#files.get(posix.join(folder, 'package.json'));
    if (text !== undefined) {
      const { type } = JSON.parse(text) as { type?: unknown };
      return type === 'module' || type === 'commonjs' ? type : undefined;
    }
    return folder === '.' ? undefined : this.#typeOf(posix.dirname(folder));
  }
}

const COMMONJS = ['exports', 'require', 'module', '__filename', '__dirname'];
const IMPORT_OR_EXPORT = /^\s*(?:import|export)\b/m;

/**
 * Returns whether the source is an ES module. JavaScript counts as an ES module if the source does not compile as
 * CommonJS. TypeScript counts as an ES module if the source contains `import` or `export`.
 */
function isModule(source: string, language: string | undefined): boolean {
  if (language === 't') return IMPORT_OR_EXPORT.test(source);
  try {
    compileFunction(source, COMMONJS);
    return false;
  } catch {
    return true;
  }
}
