import { z } from 'zod';
import { problemsOf } from '../../../../kit/schema-problems.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { DefinitionIssue, Path } from './templates.ts';

/** An input with defaults filled in, or what is wrong with it. */
export type CheckedInput = { value: JsonValue } | { issues: ReadonlyArray<{ path: Path; message: string }> };

export interface InputSchema {
  /** Throws RangeError for an input that is nested too deeply for it. */
  check(input: JsonValue): CheckedInput;
  /** Whether a check visits each value once, so that its cost is that of reading the input. */
  readonly isCheap: boolean;
}

/** Compiles a JSON Schema. Throws with a message for one that cannot be used. */
export function compileInputSchema(schema: object): InputSchema {
  const fault = referenceFault(schema);
  if (fault) throw new Error(fault);
  const compiled = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  return {
    isCheap: isCheap(schema),
    check(input) {
      const parsed = compiled.safeParse(input);
      if (parsed.success) return { value: parsed.data as JsonValue };
      return { issues: problemsOf(parsed.error.issues, input) as Array<{ path: Path; message: string }> };
    },
  };
}

/** The schema of an input as an issue of its definition, where it cannot be used. */
export function inputSchemaOf(schema: object, issues: DefinitionIssue[]): InputSchema | null {
  try {
    return compileInputSchema(schema);
  } catch (error) {
    const { message } = error as Error;
    issues.push({ path: ['inputs'], message: `is not a JSON Schema that can be used: ${message}` });
    return null;
  }
}

/** Keywords whose schemas apply to the value itself, not to a part of it. */
const IN_PLACE_LISTS = ['allOf', 'anyOf', 'oneOf'];
const IN_PLACE = ['not', 'if', 'then', 'else'];

/** A `$ref` to nothing, or one that leads back to its own schema before any part of the value was taken: that has no end. */
function referenceFault(root: object): string | undefined {
  const refs = new Set<string>();
  collectRefs(root, refs, new Set());
  for (const ref of refs) {
    if (ref.startsWith('#') && resolve(root, ref) === undefined)
      return `"$ref": "${ref}" names nothing in it`;
    if (comesBackTo(ref, root, ref, new Set())) return `"$ref": "${ref}" refers to itself without an end`;
  }
  return undefined;
}

function collectRefs(schema: unknown, refs: Set<string>, seen: Set<unknown>): void {
  if (typeof schema !== 'object' || schema === null || seen.has(schema)) return;
  seen.add(schema);
  const { $ref } = schema as { $ref?: unknown };
  if (typeof $ref === 'string') refs.add($ref);
  for (const part of Object.values(schema)) collectRefs(part, refs, seen);
}

function comesBackTo(start: string, root: object, ref: string, seen: Set<string>): boolean {
  if (seen.has(ref)) return false;
  seen.add(ref);
  return refsInPlace(resolve(root, ref)).some(
    (next) => next === start || comesBackTo(start, root, next, seen),
  );
}

/** The references of a schema that apply to the same value as it does. */
function refsInPlace(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = schema as Record<string, unknown>;
  const lists = IN_PLACE_LISTS.flatMap((key) => (Array.isArray(own[key]) ? own[key] : []));
  const inner = [...lists, ...IN_PLACE.map((key) => own[key])].flatMap(refsInPlace);
  return typeof own.$ref === 'string' ? [own.$ref, ...inner] : inner;
}

/** What a local reference (`#/$defs/name`) names. */
function resolve(root: object, ref: string): unknown {
  if (ref === '#') return root;
  return ref
    .replace(/^#\//, '')
    .split('/')
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (value, part) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, part)
          ? (value as Record<string, unknown>)[part]
          : undefined,
      root,
    );
}

const CHEAP_KEYWORDS = new Set([
  ...['$schema', '$id', 'title', 'description', 'examples', 'default', 'deprecated', 'type', 'enum', 'const'],
  ...['properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems', 'minLength'],
  ...['maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);

/** True without patterns, references and alternatives: then every value is held against one schema. */
function isCheap(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return true;
  const own = schema as Record<string, unknown>;
  if (!Object.keys(own).every((key) => CHEAP_KEYWORDS.has(key))) return false;
  const properties = typeof own.properties === 'object' && own.properties !== null ? own.properties : {};
  return [...Object.values(properties), own.additionalProperties, own.items].every(isCheap);
}
