import type { ErrorObject } from 'ajv/dist/2020.js';

/** A fault of a value. `path` is a dot path, and empty for the value itself. */
export interface SchemaFault {
  path: string;
  message: string;
}

export type JsonCheck = (value: unknown) => SchemaFault[];

/**
 * Compiles a JSON Schema 2020-12 to a function that returns the faults of a value. ajv is loaded on first use. `format`
 * is not validated, which is the default of JSON Schema 2020-12.
 */
export async function compileJsonCheck(schema: object): Promise<JsonCheck> {
  const { Ajv2020 } = await import('ajv/dist/2020.js');
  const check = new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
  return (value) => (check(value) ? [] : ajvFaults(check.errors));
}

/** Converts the errors of ajv. */
export function ajvFaults(errors: ErrorObject[] | null | undefined): SchemaFault[] {
  return (errors ?? []).slice(0, 100).map((error) => ({
    path: pathOf(error),
    message: ajvText(error),
  }));
}

/**
 * Returns the text of an ajv error, without the property name. The path of the issue already contains the property
 * name.
 */
function ajvText({ keyword, params, message }: ErrorObject): string {
  if (keyword === 'required') return 'is missing';
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') return 'is not a known key';
  if (keyword === 'enum')
    return `must be one of ${(params.allowedValues as unknown[]).map(String).join(', ')}`;
  return message ?? keyword;
}

/**
 * Returns the path of the value to which an ajv error belongs. For a missing or unexpected property, the path includes
 * the property name.
 */
function pathOf({ instancePath, params }: ErrorObject): string {
  const { missingProperty, additionalProperty, unevaluatedProperty } = params as Record<string, unknown>;
  const property = missingProperty ?? additionalProperty ?? unevaluatedProperty;
  const parts = instancePath.split('/').slice(1);
  return [
    ...parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
    ...(typeof property === 'string' ? [property] : []),
  ].join('.');
}
