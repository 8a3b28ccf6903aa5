import { isRecord } from '../../kit/data/is-record.ts';
import { localTarget, schemaFault } from '../../kit/schemas/schema-faults.ts';
import { requireBoundedChecks } from './schema-growth.ts';
import { Refused } from './schema-refusal.ts';

/** Limits of one schema. Published servers stay far below them. */
const MAX_CHARS = 64 * 1024;
const MAX_DEPTH = 32;
/** Size with all references expanded, in values. A check against a schema visits each of them at least once. */
const MAX_EXPANDED = 20_000;
const MAX_PATTERN_CHARS = 512;

type Schema = Record<string, unknown>;

/**
 * Returns the reason why the schema of a tool is refused. Its author is not trusted: a check against it must end soon,
 * and must read nothing but the schema.
 */
export function toolSchemaFault(schema: Schema): string | undefined {
  const text = JSON.stringify(schema);
  if (text.length > MAX_CHARS) return `it has ${text.length} characters; at most ${MAX_CHARS} are allowed`;
  try {
    requirePlain(schema, 0);
    const compiled = portable(schema);
    const fault = schemaFault(compiled);
    if (fault !== undefined) return fault;
    if (new Expansion(compiled).sizeOf(compiled) > MAX_EXPANDED)
      return `it has more than ${MAX_EXPANDED} parts with its references`;
    requireBoundedChecks(compiled);
    return undefined;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

function requirePlain(value: unknown, depth: number): void {
  if (depth > MAX_DEPTH) throw new Refused(`it nests deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) for (const item of value) requirePlain(item, depth + 1);
  if (!isRecord(value)) return;
  const { $ref, $dynamicRef, $recursiveRef } = value;
  if (typeof $ref === 'string' && !$ref.startsWith('#'))
    throw new Refused(`"$ref": ${JSON.stringify($ref.slice(0, 200))} leads out of the schema`);
  if (typeof $dynamicRef === 'string' || typeof $recursiveRef === 'string')
    throw new Refused('it has a reference that depends on the caller of the schema');
  for (const item of Object.values(value)) requirePlain(item, depth + 1);
}

/** Counts the values of a schema with references expanded, so that nested definitions cannot multiply. */
class Expansion {
  readonly #root: Schema;
  readonly #sizes = new Map<object, number>();

  constructor(root: Schema) {
    this.#root = root;
  }

  sizeOf(value: unknown): number {
    if (typeof value !== 'object' || value === null) return 1;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    // A recursive reference counts once. `requireBoundedChecks` limits how often it is followed.
    this.#sizes.set(value, 1);
    let size = 1;
    for (const [key, item] of Object.entries(value)) {
      if (value === this.#root && (key === '$defs' || key === 'definitions')) continue;
      size += this.sizeOf(key === '$ref' && typeof item === 'string' ? localTarget(this.#root, item) : item);
      if (size > MAX_EXPANDED) break;
    }
    this.#sizes.set(value, size);
    return size;
  }
}

const NOT_PORTABLE = new Set(['$schema', '$id', 'id', '$anchor', '$dynamicAnchor', '$comment']);
/** Keywords whose keys are names of the author, not keywords. */
const NAMES = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);

/**
 * Returns the schema in the dialect of the platform, JSON Schema 2020-12. Patterns that could take exponential time are
 * left out: the server checks them.
 */
export function portable(schema: Schema): Schema {
  return turned(schema, false) as Schema;
}

function turned(value: unknown, areNames: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => turned(item, false));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).flatMap(([key, item]): Array<[string, unknown]> => {
    if (areNames) return [[key, turned(item, false)]];
    if (NOT_PORTABLE.has(key) && typeof item === 'string') return [];
    // ajv would check such a schema with a promise, which counts as a valid result.
    if (key === '$async') return [];
    if (key === 'pattern' && !(typeof item === 'string' && isLinear(item))) return [];
    if (key === 'patternProperties' && isRecord(item) && !Object.keys(item).every(isLinear)) return [];
    if (key === 'enum' || key === 'const' || key === 'default' || key === 'examples') return [[key, item]];
    if (key === 'items' && Array.isArray(item)) return [['prefixItems', turned(item, false)]];
    if (key === 'additionalItems' && Array.isArray(value.items)) return [['items', turned(item, false)]];
    return [[key, turned(item, NAMES.has(key))]];
  });
  return Object.fromEntries(entries);
}

/** Returns whether a pattern has no repeated group and no back reference, and so takes polynomial time at most. */
function isLinear(pattern: string): boolean {
  if (pattern.length > MAX_PATTERN_CHARS || /\\[1-9k]|\(\?</.test(pattern)) return false;
  const plain = pattern.replace(/\\./gs, 'x').replace(/\[[^\]]*\]/g, 'x');
  if (/\)[*+{]/.test(plain)) return false;
  // Each unbounded repetition multiplies the time by the length of the text.
  return (plain.match(/[*+]|\{\d+,\d*\}/g) ?? []).length <= 3;
}
