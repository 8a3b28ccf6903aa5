import type {
  DescribedHandler,
  DescribedSchema,
  ManifestV3,
  SchemaRef,
  SchemaToDescribe,
} from '../../../contracts/index.ts';
import { createNumbering } from '../../../kit/data/numbering.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import { zodRefs } from '../../../plugins/index.ts';

type JsonSchema = Record<string, unknown>;

/** Maximum characters of a schema with all references expanded. */
const MAX_CHARS = 1024 * 1024;
/** Characters that a value counts besides its text. */
const VALUE_CHARS = 4;
/** Retry delay: the description is public, and a module that hangs costs 15 s of CPU per attempt. */
const RETRY_MS = minutes(1);

/** Reads a JSON file inside the plugin's folder; rejects other paths. */
export type ReadPluginJson = (file: string) => Promise<unknown>;

/** The schema references of one manifest entry. */
export interface Declared {
  handler: string;
  input?: SchemaRef | undefined;
  output?: SchemaRef | undefined;
}

/**
 * A plugin's schemas for API descriptions. Each is self-contained: references to the plugin's files are
 * lifted into `$defs`. An unreadable schema is described as accepting anything, with the reason.
 */
export interface PluginSchemas {
  /** The manifest's schemas of a handler, otherwise those of its definition; undefined without any. */
  ofHandler(declared: Declared): Promise<{ input: JsonSchema | undefined; output: JsonSchema | undefined }>;
}

export interface PluginSchemasDeps {
  manifest: ManifestV3;
  readJson: ReadPluginJson;
  /** Run the plugin's code; both throw if that fails. */
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
  // Cached, since many routes may name one schema.
  const bundles = new Map<string, Promise<JsonSchema>>();
  const bundled = (ref: string): Promise<JsonSchema> => {
    const found = bundles.get(ref) ?? bundle(ref, open);
    bundles.set(ref, found);
    return found;
  };
  const printed = new WeakMap<JsonSchema, JsonSchema>();
  const selfContainedOnce = (schema: JsonSchema): JsonSchema => {
    const found = printed.get(schema) ?? selfContained(schema);
    printed.set(schema, found);
    return found;
  };
  /**
   * One request for all, on first use, since each costs a process. A failed one is retried only after a
   * delay.
   */
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
      if (found?.schema) return selfContainedOnce(found.schema);
      return { description: `Checked against ${ref.zod}, which cannot be converted: ${found?.fault}` };
    } catch (error) {
      const name = '$ref' in ref ? ref.$ref : ref.zod;
      return { description: `The schema ${name} cannot be read: ${messageOf(error)}` };
    }
  }

  async function own(handler: string, io: 'input' | 'output'): Promise<JsonSchema | undefined> {
    try {
      const found = (await describedHandlers()).get(handler);
      const schema = found && found.fault === undefined ? found[io] : null;
      return schema ? selfContainedOnce(schema) : undefined;
    } catch {
      // The code fails to load; calling the handler reports the error.
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

/** Makes references to the root (`#`) refer to a named definition. */
function selfContained({ $schema: _, $defs, ...root }: JsonSchema): JsonSchema {
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
  let left = MAX_CHARS;

  /** Limits the expanded text: nested definitions can make it grow exponentially. */
  function spend(text: string): void {
    left -= text.length + VALUE_CHARS;
    if (left < 0) throw new Error(`it exceeds ${MAX_CHARS} characters with its references`);
  }

  /** Adds the target of a reference in `file` to `$defs` and returns its name. */
  async function define(reference: string, file: string): Promise<string> {
    const { file: target, pointer } = locate(reference, file);
    const key = `${target}#${pointer}`;
    const known = names.get(key);
    if (known) return known;
    const name = uniqueName(lastWord(pointer || target));
    names.set(key, name);
    // Reserved before reading, so that recursive schemas terminate.
    $defs[name] = {};
    const schema = at(await open(target), pointer);
    if (schema === undefined) throw new Error(`${key} does not exist`);
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
      // Definitions are added when referenced; anchors have no meaning in another document.
      else if (key !== '$defs' && key !== '$id' && key !== '$schema')
        entries.push([key, await rewrite(item, file)]);
    }
    return Object.fromEntries(entries);
  }

  return { $ref: `#/$defs/${await define(ref, '')}`, $defs };
}

/**
 * Resolves `schemas.json#/$defs/A`, `#/$defs/A` or `schemas.json` to a file, relative to the plugin, and a
 * JSON pointer.
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

/** Last segment of a pointer or file name. */
function lastWord(from: string): string {
  const word = from.split('/').at(-1)!;
  return word.replace(/\.json$/, '').replace(/[^A-Za-z0-9_-]/g, '_') || 'Schema';
}
