import { z } from 'zod';
import { MAX_DURATION_MS } from './duration-text.ts';

export interface AnyJsonSchema extends z.ZodType<z.infer<ReturnType<typeof z.json>>> {}
/**
 * Any JSON value. `z.json()` is not used, because `z.json()` traverses the whole parsed value and silently drops
 * `__proto__` keys. Declarations name the interface of a schema, but would repeat an inferred type at each use.
 */
export const AnyJson = z
  .unknown()
  .refine((value) => value !== undefined, 'is required') as unknown as AnyJsonSchema;

/** Name of a job or step, which appears in expressions (`steps.build.output`) and in URLs. */
export const Name = z
  .string()
  .max(64)
  .regex(
    /^[A-Za-z_][A-Za-z0-9_-]*$/,
    'must start with a letter or "_" and contain only letters, digits, "_" and "-"',
  );

export const WorkflowId = z
  .string()
  .max(256)
  .regex(/^[A-Za-z0-9@][A-Za-z0-9@/._-]*$/, 'must contain only letters, digits and @ / . _ -');

export const Ms = z.number().int().positive().max(MAX_DURATION_MS);

/** CEL condition, optionally wrapped in `${{ }}`. */
export const Condition = z.union([z.string().min(1).max(4096), z.boolean()]);
