import type { SchemaRef } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors.ts';

type JsonSchema = Record<string, unknown>;

/** Reads a JSON file of a plugin by its path inside the plugin's folder; refuses one outside. */
export type ReadPluginJson = (file: string) => Promise<unknown>;

/**
 * A plugin's schemas as they stand in an API description: each becomes one self-contained schema, what it
 * refers to (in its file, or in another of the plugin's) lifted into `$defs`. What cannot be read is described as anything,
 * with the reason; a fault in one schema must not take the description from the others.
 */
export interface PluginSchemas {
  describe(ref: SchemaRef): Promise<JsonSchema>;
}

export function createPluginSchemas(readJson: ReadPluginJson): PluginSchemas {
  const files = new Map<string, Promise<unknown>>();
  const open = (file: string): Promise<unknown> => {
    const found = files.get(file) ?? readJson(file);
    files.set(file, found);
    return found;
  };

  return {
    async describe(ref) {
      // A zod schema is code of the plugin; daemons never load it.
      if ('zod' in ref) return { description: `Checked by the plugin against its zod schema ${ref.zod}` };
      try {
        return await bundle(ref.$ref, open);
      } catch (error) {
        return { description: `The schema ${ref.$ref} cannot be shown: ${messageOf(error)}` };
      }
    },
  };
}

async function bundle(ref: string, open: ReadPluginJson): Promise<JsonSchema> {
  const names = new Map<string, string>();
  const $defs: Record<string, JsonSchema> = {};

  /** The name in `$defs` of what a reference in `file` points at; read on its first mention. */
  async function define(reference: string, file: string): Promise<string> {
    const { file: target, pointer } = locate(reference, file);
    const key = `${target}#${pointer}`;
    const known = names.get(key);
    if (known) return known;
    const name = uniqueName(pointer || target, $defs);
    names.set(key, name);
    // Reserved before it is read, so that a schema that contains itself ends.
    $defs[name] = {};
    const schema = at(await open(target), pointer);
    if (schema === undefined) throw new Error(`nothing is at ${key}`);
    $defs[name] = (await rewrite(schema, target)) as JsonSchema;
    return name;
  }

  async function rewrite(value: unknown, file: string): Promise<unknown> {
    if (Array.isArray(value)) return Promise.all(value.map((item) => rewrite(item, file)));
    if (typeof value !== 'object' || value === null) return value;
    const entries: Array<[string, unknown]> = [];
    for (const [key, item] of Object.entries(value)) {
      if (key === '$ref' && typeof item === 'string')
        entries.push([key, `#/$defs/${await define(item, file)}`]);
      // Definitions come in by being referred to, and anchors mean nothing in another document.
      else if (key !== '$defs' && key !== '$id' && key !== '$schema')
        entries.push([key, await rewrite(item, file)]);
    }
    return Object.fromEntries(entries);
  }

  return { $ref: `#/$defs/${await define(ref, '')}`, $defs };
}

/** `schemas.json#/$defs/A`, `#/$defs/A`, `schemas.json`: the file, relative to the plugin, and the JSON pointer. */
function locate(reference: string, from: string): { file: string; pointer: string } {
  const hash = reference.indexOf('#');
  const path = hash === -1 ? reference : reference.slice(0, hash);
  const pointer = hash === -1 ? '' : decodeURIComponent(reference.slice(hash + 1));
  if (path === '') return { file: from, pointer };
  const base = 'file:///';
  const url = new URL(path, new URL(from, base));
  if (!url.href.startsWith(base)) throw new Error(`${reference} is no file of the plugin`);
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

/** The last word of a pointer or file name, numbered when taken. */
function uniqueName(from: string, taken: object): string {
  const word =
    from
      .split('/')
      .at(-1)!
      .replace(/\.json$/, '')
      .replace(/[^A-Za-z0-9_-]/g, '_') || 'Schema';
  for (let count = 1; ; count++) {
    const name = count === 1 ? word : `${word}${count}`;
    if (!Object.hasOwn(taken, name)) return name;
  }
}
