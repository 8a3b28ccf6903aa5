import { z } from 'zod';

/** Returns the keys that a schema allows at `path`. For a union, returns the keys of all its options. */
export function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  let current = bare(schema);
  for (const key of path) {
    const next = childOf(current, key);
    if (!next) return [];
    current = bare(next);
  }
  return keysOf(current);
}

function keysOf(schema: z.core.$ZodType): string[] {
  if (schema instanceof z.ZodUnion)
    return [...new Set(schema.options.flatMap((option) => keysOf(bare(option))))];
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

function childOf(schema: z.core.$ZodType, key: PropertyKey): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) return schema.shape[String(key)];
  if (schema instanceof z.ZodRecord) return schema.valueType;
  if (schema instanceof z.ZodArray) return schema.element;
  if (schema instanceof z.ZodUnion)
    return schema.options.map((option) => childOf(bare(option), key)).find((child) => child !== undefined);
  return undefined;
}

/** Returns the schema inside optional, nullable, default and transform wrappers. */
export function bare(schema: z.core.$ZodType): z.core.$ZodType {
  let current = schema;
  for (;;) {
    if (
      current instanceof z.ZodOptional ||
      current instanceof z.ZodNullable ||
      current instanceof z.ZodDefault ||
      current instanceof z.ZodPrefault
    )
      current = current.unwrap();
    else if (current instanceof z.ZodPipe) current = current.in;
    else return current;
  }
}
