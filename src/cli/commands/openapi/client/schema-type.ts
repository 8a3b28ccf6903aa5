import { isRecord } from '../../../../kit/data/is-record.ts';

type JsonSchema = Record<string, unknown>;

/** Maximum nesting of a schema. Deeper parts become `unknown`. */
const MAX_DEPTH = 60;
const COMPONENT = /^#\/components\/schemas\/([^/]+)$/;

/**
 * Converts a JSON Schema of the API description to a TypeScript type. Keywords that only restrict values, such as
 * `pattern`, have no effect. A schema that has no TypeScript type becomes `unknown`.
 */
export function schemaType(schema: unknown, depth = 0): string {
  if (schema === false) return 'never';
  if (!isRecord(schema) || depth > MAX_DEPTH) return 'unknown';
  const inner = (part: unknown): string => schemaType(part, depth + 1);
  const parts: string[] = [];
  if (typeof schema.$ref === 'string') parts.push(referenceType(schema.$ref));
  if ('const' in schema) parts.push(literalType(schema.const));
  else if (Array.isArray(schema.enum)) parts.push(union(schema.enum.map(literalType)));
  else parts.push(union(typesOf(schema).map((type) => typeOf(type, schema, inner))));
  for (const alternatives of [schema.anyOf, schema.oneOf])
    if (Array.isArray(alternatives)) parts.push(union(alternatives.map(inner)));
  if (Array.isArray(schema.allOf)) parts.push(...schema.allOf.map(inner));
  return intersection(parts);
}

function referenceType(ref: string): string {
  const name = COMPONENT.exec(ref)?.[1];
  if (name === undefined) return 'unknown';
  return `components["schemas"][${JSON.stringify(unescapePointer(name))}]`;
}

/** Decodes a part of a JSON pointer in a URL. */
function unescapePointer(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return part;
  }
}

function literalType(value: unknown): string {
  return typeof value === 'object' && value !== null ? 'unknown' : JSON.stringify(value);
}

/** Returns the types of a schema. A schema without `type` has the type of its keywords. */
function typesOf({ type, properties, additionalProperties, items, prefixItems }: JsonSchema): unknown[] {
  if (Array.isArray(type)) return type;
  if (type !== undefined) return [type];
  if (properties !== undefined || additionalProperties !== undefined) return ['object'];
  return items !== undefined || prefixItems !== undefined ? ['array'] : ['unknown'];
}

function typeOf(type: unknown, schema: JsonSchema, inner: (part: unknown) => string): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return listType(schema, inner);
    case 'object':
      return objectType(schema, inner);
    default:
      return 'unknown';
  }
}

function listType({ items, prefixItems }: JsonSchema, inner: (part: unknown) => string): string {
  if (!Array.isArray(prefixItems)) return `${inner(items)}[]`;
  const first = prefixItems.map(inner);
  return `[${[...first, ...(items === false ? [] : [`...${inner(items)}[]`])].join(', ')}]`;
}

function objectType(schema: JsonSchema, inner: (part: unknown) => string): string {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required)
    ? schema.required.filter((key) => typeof key === 'string')
    : [];
  const absent = required.filter((key) => !Object.hasOwn(properties, key)).map((key) => [key, {}] as const);
  const fields = [...Object.entries(properties), ...absent].map(([key, property]) =>
    field({ key, type: inner(property), isOptional: !required.includes(key), about: property }),
  );
  const others = schema.additionalProperties;
  if (fields.length === 0) {
    if (others === false) return 'Record<string, never>';
    return `{ [key: string]: ${inner(others)} }`;
  }
  const known = `{\n${fields.join('\n')}\n}`;
  return isRecord(others) ? intersection([known, `{ [key: string]: ${inner(others)} }`]) : known;
}

interface Field {
  key: string;
  type: string;
  isOptional: boolean;
  /** Schema or parameter whose `description` becomes a comment. */
  about?: unknown;
}

/** Formats a property of an object type, with its description as a comment. */
export function field({ key, type, isOptional, about }: Field): string {
  const description = isRecord(about) && typeof about.description === 'string' ? about.description : '';
  return `${comment(description)}${keyText(key)}${isOptional ? '?' : ''}: ${type};`;
}

/** Formats a key. Status codes are numbers, because openapi-fetch finds successful responses by numeric keys. */
function keyText(key: string): string {
  return /^(?:[A-Za-z_$][\w$]*|[1-5]\d\d)$/.test(key) ? key : JSON.stringify(key);
}

/** Formats a doc comment that ends with a newline. The text comes from plugins and must not end the comment. */
export function comment(text: string): string {
  const lines = text
    .trim()
    .replaceAll('*/', '*\\/')
    .split(/\r\n|[\n\r\u2028\u2029]/);
  if (lines.length === 1) return lines[0] === '' ? '' : `/** ${lines[0]} */\n`;
  return `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join('\n')}\n */\n`;
}

function union(types: string[]): string {
  const unique = [...new Set(types)];
  if (unique.length === 0) return 'never';
  if (unique.includes('unknown')) return 'unknown';
  return unique.length === 1 ? unique[0]! : `(${unique.join(' | ')})`;
}

function intersection(types: string[]): string {
  const known = [...new Set(types)].filter((type) => type !== 'unknown');
  if (known.length <= 1) return known[0] ?? 'unknown';
  return `(${known.join(' & ')})`;
}
