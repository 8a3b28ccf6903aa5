import { isRecord } from '../kit/is-record.ts';
import { ownValue } from '../kit/own-value.ts';

/** A schema may refer to itself. */
const MAX_DEPTH = 32;

/** A plugin's settings with the defaults that its `configSchema` declares, nested ones included. */
export function withDefaults(schema: unknown, settings: unknown): unknown {
  return fill(schema, settings, schema, 0);
}

function fill(schema: unknown, value: unknown, root: unknown, depth: number): unknown {
  if (!isRecord(schema) || depth > MAX_DEPTH) return value;
  const { $ref, default: fallback, properties, items, allOf } = schema;
  let filled = value === undefined && fallback !== undefined ? structuredClone(fallback) : value;
  if (typeof $ref === 'string') filled = fill(target($ref, root), filled, root, depth + 1);
  for (const part of Array.isArray(allOf) ? allOf : []) filled = fill(part, filled, root, depth + 1);
  if (Array.isArray(filled) && isRecord(items))
    return filled.map((item) => fill(items, item, root, depth + 1));
  if (!isRecord(filled) || !isRecord(properties)) return filled;
  const result: Record<string, unknown> = { ...filled };
  for (const [name, property] of Object.entries(properties)) {
    const inner = fill(property, ownValue(result, name), root, depth + 1);
    if (inner !== undefined && name !== '__proto__') result[name] = inner;
  }
  return result;
}

/** A `$ref` into the schema itself. */
function target(ref: string, root: unknown): unknown {
  if (!ref.startsWith('#')) return undefined;
  const parts = ref.slice(1).split('/').slice(1);
  return parts.reduce<unknown>(
    (at, part) => (isRecord(at) ? ownValue(at, part.replaceAll('~1', '/').replaceAll('~0', '~')) : undefined),
    root,
  );
}
