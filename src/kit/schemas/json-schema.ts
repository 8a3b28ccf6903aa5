import { z } from 'zod';
import { type PartCount, schemaFault } from './schema-faults.ts';

/** Compiles a JSON Schema. Throws an error with the reason if the schema is unusable. */
export function compileJsonSchema(schema: object, count?: PartCount): z.ZodType {
  const fault = schemaFault(schema, count);
  if (fault) throw new Error(fault);
  // The global registry of the library would keep each schema with an `id` forever, so a separate registry is used.
  const registry = z.registry<z.core.GlobalMeta>();
  return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0], { registry });
}
