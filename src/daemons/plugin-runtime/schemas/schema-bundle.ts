import { createNumbering } from '../../../kit/data/numbering.ts';

export type JsonSchema = Record<string, unknown>;

/** Maximum number of characters of a schema with all references expanded. */
const MAX_CHARS = 1024 * 1024;
/** Fixed size of each value of a schema, in characters. Added to the size of the value's text. */
const VALUE_CHARS = 4;
/** Reads a JSON file inside the plugin's folder. Rejects other paths. */
export type ReadPluginJson = (file: string) => Promise<unknown>;

/**
 * Returns the referenced schema, with all of its definitions copied into `$defs`. Throws if a file or definition is
 * missing, or if the result is too large.
 */
export async function bundleSchema(ref: string, open: ReadPluginJson): Promise<JsonSchema> {
  return new Bundle(open).of(ref);
}

/** Rewrites references to the root (`#`) as references to a named definition in `$defs`. */
export function selfContained({ $schema: _, $defs, ...root }: JsonSchema): JsonSchema {
  const defs = typeof $defs === 'object' && $defs !== null ? ($defs as Record<string, JsonSchema>) : {};
  let name = 'Self';
  while (Object.hasOwn(defs, name)) name += '_';
  let refersToRoot = false;
  const turn = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(turn);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        if (key !== '$ref' || item !== '#') return [key, turn(item)];
        refersToRoot = true;
        return [key, `#/$defs/${name}`];
      }),
    );
  };
  const turned = turn(root) as JsonSchema;
  const turnedDefs = turn(defs) as Record<string, JsonSchema>;
  if (!refersToRoot)
    return { ...turned, ...(Object.keys(turnedDefs).length > 0 ? { $defs: turnedDefs } : {}) };
  return { $ref: `#/$defs/${name}`, $defs: { ...turnedDefs, [name]: turned } };
}

class Bundle {
  readonly #open: ReadPluginJson;
  readonly #names = new Map<string, string>();
  readonly #defs: Record<string, JsonSchema> = {};
  readonly #uniqueName = createNumbering((name) => Object.hasOwn(this.#defs, name));
  #left = MAX_CHARS;

  constructor(open: ReadPluginJson) {
    this.#open = open;
  }

  async of(ref: string): Promise<JsonSchema> {
    return { $ref: `#/$defs/${await this.#define(ref, '')}`, $defs: this.#defs };
  }

  /** Counts text towards the size limit, because nested definitions can make a schema grow exponentially. */
  #spend(text: string): void {
    this.#left -= text.length + VALUE_CHARS;
    if (this.#left < 0) throw new Error(`it exceeds ${MAX_CHARS} characters with its references`);
  }

  /** Adds the target of a reference in `file` to `$defs` and returns its name. */
  async #define(reference: string, file: string): Promise<string> {
    const { file: target, pointer } = locate(reference, file);
    const key = `${target}#${pointer}`;
    const known = this.#names.get(key);
    if (known) return known;
    const name = this.#uniqueName(lastWord(pointer || target));
    this.#names.set(key, name);
    // The name is reserved before the file is read, so that recursive schemas terminate.
    this.#defs[name] = {};
    const schema = at(await this.#open(target), pointer);
    if (schema === undefined) throw new Error(`${key} does not exist`);
    this.#defs[name] = (await this.#rewrite(schema, target)) as JsonSchema;
    return name;
  }

  async #rewrite(value: unknown, file: string): Promise<unknown> {
    this.#spend(typeof value === 'string' ? value : '');
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value) items.push(await this.#rewrite(item, file));
      return items;
    }
    if (typeof value !== 'object' || value === null) return value;
    const entries: Array<[string, unknown]> = [];
    for (const [key, item] of Object.entries(value)) {
      this.#spend(key);
      if (key === '$ref' && typeof item === 'string')
        entries.push([key, `#/$defs/${await this.#define(item, file)}`]);
      // Definitions in `$defs` are copied only when referenced. `$id` and `$schema` are omitted, because both describe
      // the original document.
      else if (key !== '$defs' && key !== '$id' && key !== '$schema')
        entries.push([key, await this.#rewrite(item, file)]);
    }
    return Object.fromEntries(entries);
  }
}

/**
 * Splits a reference such as `schemas.json#/$defs/A` into file and JSON pointer. The file path is relative to the
 * plugin.
 */
function locate(reference: string, from: string): { file: string; pointer: string } {
  const hash = reference.indexOf('#');
  const path = hash === -1 ? reference : reference.slice(0, hash);
  const pointer = hash === -1 ? '' : decodeURIComponent(reference.slice(hash + 1));
  if (path === '') return { file: from, pointer };
  const base = 'file:///';
  const url = new URL(path, new URL(from, base));
  if (!url.href.startsWith(base)) throw new Error(`${reference} is not a file of the plugin`);
  return { file: decodeURIComponent(url.pathname.slice(1)), pointer };
}

function at(document: unknown, pointer: string): unknown {
  if (pointer === '') return document;
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (value, part) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, part)
          ? (value as Record<string, unknown>)[part]
          : undefined,
      document,
    );
}

/**
 * Returns a definition name from the last segment of a pointer or file name. Characters other than letters, digits, `_`
 * and `-` become `_`.
 */
function lastWord(from: string): string {
  const word = from.split('/').at(-1)!;
  return word.replace(/\.json$/, '').replace(/[^A-Za-z0-9_-]/g, '_') || 'Schema';
}
