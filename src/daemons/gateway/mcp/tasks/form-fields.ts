import { isRecord } from '../../../../kit/data/is-record.ts';

/** Schema of a field that MCP clients can show. */
export type FormField = {
  type: 'string' | 'number' | 'integer' | 'boolean' | 'array';
  [key: string]: unknown;
};

const FORMATS = new Set<unknown>(['email', 'uri', 'date', 'date-time']);
const AS_JSON = 'Enter JSON.';
/** Keys of each type that MCP allows besides the title and the description. */
const KEYS = {
  string: ['minLength', 'maxLength', 'pattern', 'default', 'enum', 'oneOf'],
  number: ['minimum', 'maximum', 'default'],
  integer: ['minimum', 'maximum', 'default'],
  boolean: ['default'],
} as const;

/**
 * Returns the field for a part of a form. MCP clients show only flat fields, so other parts become texts that hold JSON.
 */
export function fieldOf(schema: unknown): FormField {
  const given = isRecord(schema) ? schema : {};
  const about = pick(given, ['title', 'description']);
  const type = given.type ?? (isTexts(given.enum) || isTitled(given.oneOf) ? 'string' : undefined);
  if (type === 'array') return choicesOf(given, about) ?? jsonText(given);
  if (!isPlain(type) || !isUsable(given)) return jsonText(given);
  const format = FORMATS.has(given.format) ? { format: given.format } : {};
  return { type, ...about, ...pick(given, KEYS[type]), ...(type === 'string' ? format : {}) };
}

export const isJsonText = ({ type, description }: FormField): boolean =>
  type === 'string' && typeof description === 'string' && description.endsWith(AS_JSON);

function jsonText({ title, description }: Record<string, unknown>): FormField {
  const about = typeof description === 'string' ? `${description} ` : '';
  return {
    type: 'string',
    ...(typeof title === 'string' ? { title } : {}),
    description: `${about}${AS_JSON}`,
  };
}

function choicesOf(given: Record<string, unknown>, about: object): FormField | undefined {
  const { items } = given;
  if (!isRecord(items) || !(isTexts(items.enum) || isTitled(items.anyOf))) return undefined;
  const choices = isTexts(items.enum) ? { type: 'string', enum: items.enum } : { anyOf: items.anyOf };
  return { type: 'array', ...about, ...pick(given, ['minItems', 'maxItems', 'default']), items: choices };
}

/** Choices must be texts. Numbers with choices are shown as numbers, and the service checks them. */
const isUsable = ({ type, enum: choices, oneOf }: Record<string, unknown>): boolean =>
  (choices === undefined || type !== 'string' || isTexts(choices)) &&
  (oneOf === undefined || isTitled(oneOf));

const isPlain = (type: unknown): type is keyof typeof KEYS =>
  typeof type === 'string' && Object.hasOwn(KEYS, type);

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');

const isTitled = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((one) => isRecord(one) && typeof one.const === 'string' && typeof one.title === 'string');

function pick(given: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]])));
}
