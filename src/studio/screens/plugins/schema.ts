import { parsedJson } from '../../ui/parsed-json.ts';

/** The part of JSON Schema that forms use. */
export interface Schema {
  type?: unknown;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  properties?: Record<string, Schema>;
  required?: readonly string[];
  $ref?: string;
}

export type FieldKind = 'text' | 'number' | 'boolean' | 'choice' | 'json';

export interface Field {
  name: string;
  kind: FieldKind;
  isRequired: boolean;
  description: string | undefined;
  choices: readonly string[];
}

/** Returns the schema to which a reference inside of `root` points. Returns other schemas unchanged. */
export function resolved(schema: Schema | undefined, root: unknown): Schema {
  let found = schema;
  // The limit ends chains of references that form a circle.
  for (let depth = 0; found?.$ref?.startsWith('#/') && depth < 10; depth++) {
    const path = found.$ref.slice(2).split('/');
    found = path.reduce<unknown>(
      (at, key) =>
        (at as Record<string, unknown> | undefined)?.[key.replaceAll('~1', '/').replaceAll('~0', '~')],
      root,
    ) as Schema | undefined;
  }
  return found ?? {};
}

/** Returns the fields of an object. Undefined for schemas that a form cannot show. */
export function fieldsOf(schema: Schema | null, root: unknown = schema): Field[] | undefined {
  if (!schema) return undefined;
  const { properties, required = [] } = resolved(schema, root);
  if (!properties || Object.keys(properties).length === 0) return undefined;
  return Object.entries(properties).map(([name, property]) =>
    fieldOf(name, resolved(property, root), required.includes(name)),
  );
}

export function fieldOf(name: string, schema: Schema, isRequired: boolean): Field {
  const choices = (schema.enum ?? []).filter((value) => typeof value === 'string');
  return { name, kind: kindOf(schema), isRequired, description: schema.description, choices };
}

function kindOf({ type, enum: choices }: Schema): FieldKind {
  if (choices) return choices.every((value) => typeof value === 'string') ? 'choice' : 'json';
  if (type === 'string') return 'text';
  if (type === 'number' || type === 'integer') return 'number';
  return type === 'boolean' ? 'boolean' : 'json';
}

/** Texts of the fields of a form, by name. A missing text stands for a missing value. */
export type Texts = Readonly<Record<string, string>>;

/** Returns the value of the filled fields. Undefined if a text is not a value of its field. */
export function inputOf(fields: readonly Field[], texts: Texts): Record<string, unknown> | undefined {
  const value: Record<string, unknown> = {};
  for (const { name, kind, isRequired } of fields) {
    const text = texts[name] ?? '';
    if (text === '' && (kind !== 'text' || !isRequired)) {
      if (isRequired) return undefined;
      continue;
    }
    const parsed = parsedField(kind, text);
    if (parsed === undefined) return undefined;
    value[name] = parsed;
  }
  return value;
}

/** Returns the values of the fields whose text is valid. */
export function filledOf(fields: readonly Field[], texts: Texts): Record<string, unknown> {
  return Object.assign({}, ...fields.map((field) => inputOf([field], texts)));
}

function parsedField(kind: FieldKind, text: string): unknown {
  if (kind === 'text' || kind === 'choice') return text;
  const value = parsedJson(text);
  return kind === 'json' || typeof value === kind ? value : undefined;
}

/** Returns the texts of a value, for a form that takes the place of a JSON text. */
export function textsOf(fields: readonly Field[], value: unknown): Texts {
  const all = (value ?? {}) as Record<string, unknown>;
  return Object.fromEntries(
    fields
      .filter(({ name }) => all[name] !== undefined)
      .map(({ name, kind }) => [
        name,
        (kind === 'text' || kind === 'choice') && typeof all[name] === 'string'
          ? all[name]
          : JSON.stringify(all[name]),
      ]),
  );
}
