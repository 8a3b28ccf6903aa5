import { z } from 'zod';
import { createNumbering } from '../kit/data/numbering.ts';

type JsonSchema = Record<string, unknown>;

/** Collection of the named schemas of one OpenAPI description. */
export interface SchemaComponents {
  /** The `components.schemas` object of the OpenAPI description. */
  readonly schemas: Record<string, JsonSchema>;
  /**
   * Converts a zod schema to JSON Schema 2020-12. Each `$ref` in the result refers to `components.schemas`. `io` is
   * `input` for requests and `output` for responses.
   */
  add(schema: z.ZodType, io: 'input' | 'output'): JsonSchema;
  /**
   * Adds a JSON Schema and turns its `$defs` into components. Definitions with a generated key, which starts with `__`,
   * are named after `name`.
   */
  lift(schema: JsonSchema, name: string): JsonSchema;
}

const REF = '#/components/schemas/';
const ANY_JSON = 'JsonValue';

/**
 * Creates an empty collection. Schemas with an id (`.meta({id})`) become components of that name. Other schemas are
 * inlined.
 */
export function createSchemaComponents(): SchemaComponents {
  const schemas: SchemaComponents['schemas'] = {};

  const taken = new Set<string>();
  const names = new Map<string, Map<string, string>>();
  const nextName = createNumbering((name) => taken.has(name));

  /** Returns `wanted`, with a number appended if a different schema already has this name. */
  function nameFor(wanted: string, schema: JsonSchema): string {
    const text = JSON.stringify(schema);
    const namesByText = names.get(wanted) ?? new Map<string, string>();
    const name = namesByText.get(text) ?? nextName(wanted);
    taken.add(name);
    names.set(wanted, namesByText.set(text, name));
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
      // Defaults make a property optional in requests and required in responses. A schema with such properties
      // therefore gets a separate name for requests.
      const answered =
        io === 'input' && Object.keys($defs).length > 0 ? print(schema, 'output').$defs : $defs;
      const names = Object.keys($defs).filter(
        (key) => !key.startsWith('__') && JSON.stringify($defs[key]) !== JSON.stringify(answered?.[key]),
      );
      return lift(rename({ ...it, $defs }, names), 'Schema');
    },
  };
}

/**
 * Converts a schema inside a wrapper object. References in a recursive schema then point to `$defs` instead of the root
 * (`#`).
 */
function print(
  schema: z.ZodType,
  io: 'input' | 'output',
): { it: JsonSchema; $defs?: Record<string, JsonSchema> } {
  const { properties, $defs } = z.toJSONSchema(z.object({ it: schema }), {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod;
      // Fields can be added to responses later, so only request schemas forbid additional properties.
      if (io === 'output' && def.type === 'object' && !('catchall' in def && def.catchall)) {
        delete jsonSchema.additionalProperties;
      }
    },
  }) as JsonSchema as { properties: { it: JsonSchema }; $defs?: Record<string, JsonSchema> };
  return { it: properties.it, ...($defs ? { $defs } : {}) };
}

/** Appends `Input` to the names of the `$defs` listed in `keys`, and updates the references to them. */
function rename({ $defs = {}, ...root }: JsonSchema, keys: readonly string[]): JsonSchema {
  const suffixed = (key: string): string => (keys.includes(key) ? `${key}Input` : key);
  const defs = Object.entries($defs as Record<string, JsonSchema>);
  return redirect(
    { ...root, $defs: Object.fromEntries(defs.map(([key, def]) => [suffixed(key), def])) },
    (key) => `#/$defs/${suffixed(key)}`,
  );
}

/** Replaces the key in every `#/$defs/<key>` reference with the result of `to`. */
function redirect(schema: JsonSchema, to: (key: string) => string): JsonSchema {
  const rewrite = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rewrite);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        key,
        key === '$ref' ? rewriteRef(item, to) : rewrite(item),
      ]),
    );
  };
  return rewrite(schema) as JsonSchema;
}

function rewriteRef(ref: unknown, to: (key: string) => string): unknown {
  if (typeof ref !== 'string' || !ref.startsWith('#/$defs/')) return ref;
  const [key = '', ...rest] = ref.slice('#/$defs/'.length).split('/');
  return [to(key), ...rest].join('/');
}

/**
 * Returns true for the recursive definition of `z.json()`. The OpenAPI description replaces this definition with "Any
 * JSON value".
 */
function isAnyJson(key: string, schema: JsonSchema): boolean {
  return (
    key.startsWith('__') && JSON.stringify(schema).replaceAll(`#/$defs/${key}`, '#') === JSON_SCHEMA_TEXT
  );
}
const JSON_SCHEMA_TEXT = ((): string => {
  const { $defs = {} } = z.toJSONSchema(z.object({ it: z.json() }));
  const [[key, schema] = ['', {}]] = Object.entries($defs);
  return JSON.stringify(schema).replaceAll(`#/$defs/${key}`, '#');
})();
