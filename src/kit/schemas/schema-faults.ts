import { isRecord } from '../data/is-record.ts';
import { ownValue } from '../data/own-value.ts';

/** Maximum number of nested schemas in a definition. Compiling a schema takes about 50 µs. */
const MAX_PARTS = 1000;
const MAX_DEPTH = 100;

/**
 * JSON Schema keywords with a list of schemas that apply to the value itself. Schemas of properties and items are
 * excluded.
 */
const IN_PLACE_LISTS = ['allOf', 'anyOf', 'oneOf'];
const MAPS = ['properties', 'patternProperties'];
const OTHERS = [
  'items',
  'prefixItems',
  'additionalItems',
  'additionalProperties',
  'contains',
  'propertyNames',
];

type Schema = Record<string, unknown>;

/** Counter of nested schemas, shared by all schemas of one definition. */
export interface PartCount {
  parts: number;
}

/**
 * Returns the reason why a JSON Schema is unusable. Returns undefined for a usable schema. A usable schema is small
 * enough to compile, and a check against such a schema always ends.
 */
export function schemaFault(root: object, count: PartCount = { parts: 0 }): string | undefined {
  const what = count.parts === 0 ? 'it has' : 'with it the schemas of the definition have';
  try {
    const parts = new Set<Schema>();
    collect(root, 0, { root, parts, refs: new Set(), count, what });
    requireEnds(parts, root);
    return undefined;
  } catch (error) {
    if (error instanceof SchemaFault) return error.message;
    throw error;
  }
}

class SchemaFault extends Error {}

interface Walk {
  root: object;
  parts: Set<Schema>;
  refs: Set<string>;
  count: PartCount;
  /** Start of the error message about too many nested schemas. */
  what: string;
}

/**
 * Collects and counts nested schemas in the same way as the schema compiler. The compiler compiles the target of
 * references once for each spelling of the reference.
 */
function collect(schema: unknown, depth: number, walk: Walk): void {
  if (!isRecord(schema)) return;
  if (depth > MAX_DEPTH) throw new SchemaFault(`it nests deeper than ${MAX_DEPTH} levels`);
  const { $ref, type, enum: choices } = schema;
  walk.parts.add(schema);
  // For an enum with a choice that is not a string, the compiler creates one schema per choice.
  const isMixed = Array.isArray(choices) && choices.some((choice) => typeof choice !== 'string');
  walk.count.parts += isMixed ? choices.length : 1;
  if (walk.count.parts > MAX_PARTS) throw new SchemaFault(`${walk.what} more than ${MAX_PARTS} parts`);
  // For a list of types, the compiler compiles nested schemas once for each type that uses them.
  if (Array.isArray(type) && new Set(type).size < type.length)
    throw new SchemaFault('a list under "type" has the same type twice');
  if (typeof $ref === 'string' && !walk.refs.has($ref)) {
    walk.refs.add($ref);
    const target = localTarget(walk.root, $ref);
    if (target === undefined && $ref.startsWith('#'))
      throw new SchemaFault(`"$ref": "${$ref}" has no target; it can refer to "#" or "#/$defs/<name>"`);
    collect(target, depth + 1, walk);
  }
  for (const part of partsOf(schema)) collect(part, depth + 1, walk);
}

function partsOf(schema: Schema): unknown[] {
  const maps = MAPS.flatMap((key) => (isRecord(schema[key]) ? Object.values(schema[key]) : []));
  return [...inPlace(schema), ...maps, ...OTHERS.flatMap((key) => schema[key])];
}

/** Returns the schemas in lists such as `allOf`, which apply to the value itself. */
export function inPlace(schema: Schema): unknown[] {
  return IN_PLACE_LISTS.flatMap((key) => (Array.isArray(schema[key]) ? schema[key] : []));
}

/**
 * Throws if a schema refers to itself without descending to a property or item. A check against such a schema would
 * never end.
 */
function requireEnds(parts: ReadonlySet<Schema>, root: object): void {
  const states = new Map<Schema, 'open' | 'done'>();
  function visit(schema: Schema): void {
    states.set(schema, 'open');
    const { $ref } = schema;
    const target = typeof $ref === 'string' ? localTarget(root, $ref) : undefined;
    for (const next of [target, ...inPlace(schema)]) {
      if (!isRecord(next)) continue;
      // The error names the `$ref`, because every cycle of schemas contains a reference.
      if (states.get(next) === 'open')
        throw new SchemaFault(`"$ref": "${$ref}" refers to itself without an end`);
      if (!states.has(next)) visit(next);
    }
    states.set(schema, 'done');
  }
  for (const part of parts) if (!states.has(part)) visit(part);
}

/**
 * Resolves a local reference to the root schema or to one of its definitions. Returns undefined if the target does not
 * exist.
 */
export function localTarget(root: object, ref: string): unknown {
  if (ref === '#') return root;
  const [, keyword, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(ref) ?? [];
  if (keyword === undefined || name === undefined) return undefined;
  const definitions = ownValue(root as Schema, keyword);
  if (!isRecord(definitions)) return undefined;
  const key = decoded(name);
  return key === undefined ? undefined : ownValue(definitions, key);
}

/** Decodes a part of a JSON pointer in a URI. Returns undefined for invalid percent-encoding. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}
