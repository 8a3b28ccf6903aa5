/** Part of JSON Schema that forms understand. */
export interface FieldSchema {
  type?: unknown;
  title?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  format?: string;
  items?: FieldSchema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  properties?: Record<string, FieldSchema>;
  required?: string[];
}

export type FieldKind = 'choice' | 'choices' | 'boolean' | 'number' | 'date' | 'line' | 'text' | 'json';

/** Value of a field as its control has it: a text, a check mark, or the indexes of the chosen values. */
export type FieldValue = string | boolean | readonly number[];

export interface Field {
  name: string;
  label: string;
  kind: FieldKind;
  schema: FieldSchema;
  isRequired: boolean;
}

export interface FieldIssue {
  /** Name of the field; empty for the whole form. */
  name: string;
  message: string;
}

/** Longest text that is entered in one line. */
const MAX_LINE_CHARS = 200;

/** Field of a form without properties. */
const WHOLE: Field = { name: '', label: 'Data as JSON', kind: 'json', schema: {}, isRequired: true };

/** Returns the fields of a form. A schema without properties has one field for all data, as JSON. */
export function fieldsOf(form: FieldSchema): Field[] {
  const entries = Object.entries(form.properties ?? {});
  if (entries.length === 0) return form.type === 'object' ? [WHOLE] : [];
  return entries.map(([name, schema]) => ({
    name,
    label: schema.title ?? name,
    kind: kindOf(schema),
    schema,
    isRequired: form.required?.includes(name) ?? false,
  }));
}

function kindOf({ type, enum: values, items, format, maxLength }: FieldSchema): FieldKind {
  if (values) return 'choice';
  if (type === 'boolean') return 'boolean';
  if (type === 'number' || type === 'integer') return 'number';
  if (type === 'array' && items?.enum) return 'choices';
  if (type !== 'string') return 'json';
  if (format === 'date') return 'date';
  return maxLength !== undefined && maxLength > MAX_LINE_CHARS ? 'text' : 'line';
}

/** Returns the value that a field has at first. */
export function firstValue({ kind, schema }: Field): FieldValue {
  const given = schema.default;
  if (kind === 'boolean') return given === true;
  if (kind === 'choices') return indexesOf(schema.items?.enum ?? [], Array.isArray(given) ? given : []);
  if (given === undefined) return '';
  if (kind === 'choice') return String(indexesOf(schema.enum ?? [], [given])[0] ?? '');
  return kind === 'json' ? JSON.stringify(given) : String(given);
}

function indexesOf(values: readonly unknown[], chosen: readonly unknown[]): number[] {
  const texts = chosen.map((one) => JSON.stringify(one));
  return [...values.keys()].filter((index) => texts.includes(JSON.stringify(values[index])));
}

/**
 * Returns the data of a form, or the fields whose text is not a value. Empty fields are left out. An empty required
 * field for JSON is a mistake; browsers find the other empty fields.
 */
export function dataOf(
  fields: readonly Field[],
  values: Readonly<Record<string, FieldValue>>,
): { data: unknown; issues: FieldIssue[] } {
  let data: unknown = {};
  const issues: FieldIssue[] = [];
  for (const field of fields) {
    const { name } = field;
    try {
      const value = enteredValue(field, values[name] ?? '');
      if (field === WHOLE) data = value;
      // An own property also for a name such as "__proto__".
      else if (value !== undefined) Object.defineProperty(data, name, { value, enumerable: true });
    } catch {
      issues.push({ name, message: 'must be JSON, such as "text", 12 or {"key": true}' });
    }
  }
  return { data, issues };
}

function enteredValue({ kind, schema, isRequired }: Field, value: FieldValue): unknown {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string') return value.map((index) => schema.items?.enum?.[index]);
  if (value === '' && !(kind === 'json' && isRequired)) return undefined;
  if (kind === 'choice') return schema.enum?.[Number(value)];
  if (kind === 'number') return Number(value);
  return kind === 'json' ? JSON.parse(value) : value;
}

/** Returns the issues of a refused answer by field. `part` is the first part of their paths, such as `data`. */
export function issuesOf(details: Readonly<Record<string, unknown>>, part: string): FieldIssue[] {
  if (!Array.isArray(details.issues)) return [];
  return (details.issues as Array<{ path: string; message: string }>).map(({ path, message }) => {
    const name = path.startsWith(`${part}.`) ? path.slice(part.length + 1).replace(/[.[].*$/, '') : '';
    return { name, message };
  });
}
