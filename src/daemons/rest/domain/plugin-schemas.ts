import type {
  DescribedHandler,
  DescribedSchema,
  ManifestV3,
  SchemaRef,
  SchemaToDescribe,
} from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import { minutes } from '../../../kit/duration.ts';
import { messageOf } from '../../../kit/errors.ts';
import { createNumbering } from '../../../kit/numbering.ts';
import { zodRefs } from '../../../plugins/index.ts';

type JsonSchema = Record<string, unknown>;

/** What one schema may grow to when all it refers to is written out, in characters of JSON or so. */
const MOST_CHARS = 1024 * 1024;
/** What a value counts beside its text. */
const VALUE_CHARS = 4;
/** Anybody may ask for the description, and a module that hangs costs 15 s of a processor each time it is asked about. */
const RETRY_MS = minutes(1);

/** Reads a JSON file of a plugin by its path inside the plugin's folder; refuses one outside. */
export type ReadPluginJson = (file: string) => Promise<unknown>;

/** What is asked about schemas: one entry of a manifest. */
export interface Declared {
  handler: string;
  input?: SchemaRef | undefined;
  output?: SchemaRef | undefined;
}

/**
 * A plugin's schemas as they stand in an API description: each becomes one self-contained schema, what it
 * refers to (in its file, or in another of the plugin's) lifted into `$defs`. What cannot be read is described as anything,
 * with the reason; a fault in one schema must not take the description from the others.
 */
export interface PluginSchemas {
  /** The schemas that check a handler's calls: the manifest's, else those of its definition; undefined where there are none. */
  ofHandler(declared: Declared): Promise<{ input: JsonSchema | undefined; output: JsonSchema | undefined }>;
}

export interface PluginSchemasDeps {
  manifest: ManifestV3;
  readJson: ReadPluginJson;
  /** Asks the plugin's own code; both throw when it cannot be run. */
  printZod(asked: SchemaToDescribe[]): Promise<DescribedSchema[]>;
  inspect(handlers: string[]): Promise<DescribedHandler[]>;
  clock: Clock;
}

export function createPluginSchemas({
  manifest,
  readJson,
  printZod,
  inspect,
  clock,
}: PluginSchemasDeps): PluginSchemas {
  const files = new Map<string, Promise<unknown>>();
  const open = (file: string): Promise<unknown> => {
    const found = files.get(file) ?? readJson(file);
    files.set(file, found);
    return found;
  };
  // Many routes may name one schema: what is made of it is made once.
  const bundles = new Map<string, Promise<JsonSchema>>();
  const bundled = (ref: string): Promise<JsonSchema> => {
    const found = bundles.get(ref) ?? bundle(ref, open);
    bundles.set(ref, found);
    return found;
  };
  const printed = new WeakMap<JsonSchema, JsonSchema>();
  const containedOnce = (schema: JsonSchema): JsonSchema => {
    const found = printed.get(schema) ?? contained(schema);
    printed.set(schema, found);
    return found;
  };
  /** One question for all, since each costs a process; asked when the first needs it. One that failed is not asked again at once. */
  function once<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
    let asked: Promise<Answer> | undefined;
    return () => {
      asked ??= ask().catch((error: unknown) => {
        clock.after(RETRY_MS, () => {
          asked = undefined;
        });
        throw error;
      });
      return asked;
    };
  }

  const describedZods = once(() => {
    const asked = zodRefs(manifest).map(({ zod, io }) => ({ zod, io }));
    return answers(
      asked.map(({ zod, io }) => `${io} ${zod}`),
      () => printZod(asked),
    );
  });

  const describedHandlers = once(() => {
    const declared = [...(manifest.rest?.routes ?? []), ...manifest.commands];
    const silent = [
      ...new Set(declared.filter(({ input, output }) => !input || !output).map(({ handler }) => handler)),
    ];
    return answers(silent, () => inspect(silent));
  });

  async function describe(ref: SchemaRef, io: 'input' | 'output'): Promise<JsonSchema> {
    try {
      if ('$ref' in ref) return await bundled(ref.$ref);
      const found = (await describedZods()).get(`${io} ${ref.zod}`);
      if (found?.schema) return containedOnce(found.schema);
      return { description: `Checked against ${ref.zod}, which cannot be shown: ${found?.fault}` };
    } catch (error) {
      const name = '$ref' in ref ? ref.$ref : ref.zod;
      return { description: `The schema ${name} cannot be shown: ${messageOf(error)}` };
    }
  }

  async function own(handler: string, io: 'input' | 'output'): Promise<JsonSchema | undefined> {
    try {
      const found = (await describedHandlers()).get(handler);
      const schema = found && found.fault === undefined ? found[io] : null;
      return schema ? containedOnce(schema) : undefined;
    } catch {
      // Its code cannot be loaded; calling it will say so.
      return undefined;
    }
  }

  return {
    async ofHandler({ handler, input, output }) {
      return {
        input: input ? await describe(input, 'input') : await own(handler, 'input'),
        output: output ? await describe(output, 'output') : await own(handler, 'output'),
      };
    },
  };
}

async function answers<Answer>(
  keys: readonly string[],
  ask: () => Promise<Answer[]>,
): Promise<Map<string, Answer>> {
  const found = keys.length === 0 ? [] : await ask();
  return new Map(keys.flatMap((key, index) => (index < found.length ? [[key, found[index]!]] : [])));
}

/** A schema that refers to itself as `#` must say which document it means. */
function contained({ $schema: _, $defs, ...root }: JsonSchema): JsonSchema {
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

async function bundle(ref: string, open: ReadPluginJson): Promise<JsonSchema> {
  const names = new Map<string, string>();
  const $defs: Record<string, JsonSchema> = {};
  const uniqueName = createNumbering((name) => Object.hasOwn($defs, name));
  let left = MOST_CHARS;

  /** A definition is written out for each place that is referred to, and these may lie in one another. */
  function spend(text: string): void {
    left -= text.length + VALUE_CHARS;
    if (left < 0) throw new Error(`it takes more than ${MOST_CHARS} characters with all it refers to`);
  }

  /** The name in `$defs` of what a reference in `file` points at; read on its first mention. */
  async function define(reference: string, file: string): Promise<string> {
    const { file: target, pointer } = locate(reference, file);
    const key = `${target}#${pointer}`;
    const known = names.get(key);
    if (known) return known;
    const name = uniqueName(lastWord(pointer || target));
    names.set(key, name);
    // Reserved before it is read, so that a schema that contains itself ends.
    $defs[name] = {};
    const schema = at(await open(target), pointer);
    if (schema === undefined) throw new Error(`nothing is at ${key}`);
    $defs[name] = (await rewrite(schema, target)) as JsonSchema;
    return name;
  }

  async function rewrite(value: unknown, file: string): Promise<unknown> {
    spend(typeof value === 'string' ? value : '');
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value) items.push(await rewrite(item, file));
      return items;
    }
    if (typeof value !== 'object' || value === null) return value;
    const entries: Array<[string, unknown]> = [];
    for (const [key, item] of Object.entries(value)) {
      spend(key);
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

/** The last word of a pointer or file name. */
function lastWord(from: string): string {
  const word = from.split('/').at(-1)!;
  return word.replace(/\.json$/, '').replace(/[^A-Za-z0-9_-]/g, '_') || 'Schema';
}
