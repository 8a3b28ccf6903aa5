import { z } from 'zod';
import { createNumbering } from '../kit/numbering.ts';

type JsonSchema = Record<string, unknown>;

/** The schemas of one API description, shared by name. */
export interface SchemaComponents {
  /** Every named schema met so far: `components.schemas`. */
  readonly schemas: Record<string, JsonSchema>;
  /** A schema as JSON Schema 2020-12 in which every `$ref` leads into `components.schemas`. `input` is what a caller sends, `output` what is answered. */
  add(schema: z.ZodType, io: 'input' | 'output'): JsonSchema;
  /** The same for a JSON Schema that is one already; its own `$defs` are lifted. `name` is used for what has none. */
  lift(schema: JsonSchema, name: string): JsonSchema;
}

const REF = '#/components/schemas/';
const ANY_JSON = 'JsonValue';

/** Schemas with an id (`.meta({id})`) are printed once, under that id; the rest stands where it is used. */
export function createSchemaComponents(): SchemaComponents {
  const schemas: SchemaComponents['schemas'] = {};

  const taken = new Set<string>();
  /** By wanted name and text. */
  const names = new Map<string, Map<string, string>>();
  const nextName = createNumbering((name) => taken.has(name));

  /** The wanted name, numbered when it names something else already. */
  function nameFor(wanted: string, schema: JsonSchema): string {
    const text = JSON.stringify(schema);
    const known = names.get(wanted) ?? new Map<string, string>();
    const name = known.get(text) ?? nextName(wanted);
    taken.add(name);
    names.set(wanted, known.set(text, name));
    return name;
  }

  function lift({ $schema: _, $id: __, $defs = {}, ...root }: JsonSchema, name: string): JsonSchema {
    const defs = Object.entries($defs as Record<string, JsonSchema>);
    const names = new Map<string, string>();
    const toComponent = (key: string): string => REF + (names.get(key) ?? key);
    for (const [key, schema] of defs) {
      const wanted = key.startsWith('__') ? name : key.replace(/[^A-Za-z0-9._-]/g, '_');
      names.set(key, isAnyJson(key, schema) ? ANY_JSON : nameFor(wanted, schema));
      schemas[names.get(key)!] ??= {};
    }
    for (const [key, schema] of defs) {
      const target = names.get(key)!;
      schemas[target] =
        target === ANY_JSON ? { description: 'Any JSON value' } : redirect(schema, toComponent);
    }
    return redirect(root, toComponent);
  }

  return {
    schemas,
    lift,
    add(schema, io) {
      const { it, $defs = {} } = print(schema, io);
      // A type that is sent otherwise than it is answered (it has defaults) gets a second name.
      const answered =
        io === 'input' && Object.keys($defs).length > 0 ? print(schema, 'output').$defs : $defs;
      const names = Object.keys($defs).filter(
        (key) => !key.startsWith('__') && JSON.stringify($defs[key]) !== JSON.stringify(answered?.[key]),
      );
      return lift(rename({ ...it, $defs }, names), 'Schema');
    },
  };
}

/** Inside an object no schema is the root, so that recursion refers to `$defs` and never to `#`. */
function print(
  schema: z.ZodType,
  io: 'input' | 'output',
): { it: JsonSchema; $defs?: Record<string, JsonSchema> } {
  const { properties, $defs } = z.toJSONSchema(z.object({ it: schema }), {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod;
      // An answer may gain fields; only what we refuse in a request is closed.
      if (io === 'output' && def.type === 'object' && !('catchall' in def && def.catchall)) {
        delete jsonSchema.additionalProperties;
      }
    },
  }) as JsonSchema as { properties: { it: JsonSchema }; $defs?: Record<string, JsonSchema> };
  return { it: properties.it, ...($defs ? { $defs } : {}) };
}

/** Calls each of `keys` of the `$defs` `<key>Input`. */
function rename({ $defs = {}, ...root }: JsonSchema, keys: readonly string[]): JsonSchema {
  const suffixed = (key: string): string => (keys.includes(key) ? `${key}Input` : key);
  const defs = Object.entries($defs as Record<string, JsonSchema>);
  return redirect(
    { ...root, $defs: Object.fromEntries(defs.map(([key, def]) => [suffixed(key), def])) },
    (key) => `#/$defs/${suffixed(key)}`,
  );
}

/** Points every `#/$defs/<key>` where `to` says. */
function redirect(schema: JsonSchema, to: (key: string) => string): JsonSchema {
  const turn = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(turn);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, key === '$ref' ? turnRef(item, to) : turn(item)]),
    );
  };
  return turn(schema) as JsonSchema;
}

function turnRef(ref: unknown, to: (key: string) => string): unknown {
  if (typeof ref !== 'string' || !ref.startsWith('#/$defs/')) return ref;
  const [key = '', ...rest] = ref.slice('#/$defs/'.length).split('/');
  return [to(key), ...rest].join('/');
}

/** `z.json()` spells recursion out; "anything" says the same in one word. */
function isAnyJson(key: string, schema: JsonSchema): boolean {
  return key.startsWith('__') && JSON.stringify(schema).replaceAll(`#/$defs/${key}`, '#') === SPELLED_OUT;
}
const SPELLED_OUT = ((): string => {
  const { $defs = {} } = z.toJSONSchema(z.object({ it: z.json() }));
  const [[key, schema] = ['', {}]] = Object.entries($defs);
  return JSON.stringify(schema).replaceAll(`#/$defs/${key}`, '#');
})();
