import { z } from 'zod';
import { isLongerThan } from '../../../../kit/data/json.ts';
import { problemsOf } from '../../../../kit/data/schema-problems.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { Budget } from './budget.ts';
import { spendOnCheck } from './check-cost.ts';
import { type PartCount, schemaFault } from './schema-faults.ts';
import type { DefinitionIssue, Path } from './templates.ts';

/** Maximum size of an input in characters of JSON, including defaults. */
export const MAX_INPUT_CHARS = 1024 * 1024;

/** Maximum faults reported for one input. */
const MAX_FAULTS = 100;

/** Kind of value that a schema checks: the input of a run, or the payload of a signal. */
export type CheckedPart = 'input' | 'payload';

/** Result of a check: the value with defaults filled in, or its faults. */
export type CheckedInput =
  | { value: JsonValue }
  | { issues: ReadonlyArray<{ path: Path; message: string }> }
  | { tooLarge: true };

export interface InputSchema {
  /** The JSON Schema as written, so that a worker thread can compile it. */
  readonly written: object;
  /** Checks an input and fills in defaults. Throws RangeError if the input is nested too deeply. */
  check(input: JsonValue): CheckedInput;
  /** Spends the maximum cost of a check. Throws OverBudget. */
  spendOnCheck(input: JsonValue, budget: Budget): void;
}

/** Compiles a JSON Schema. Throws an error for an unusable schema. */
export function compileInputSchema(schema: object, count?: PartCount): InputSchema {
  const fault = schemaFault(schema, count);
  if (fault) throw new Error(fault);
  // The global registry of the library is not used, because it would keep each schema with an "id" forever.
  const registry = z.registry<z.core.GlobalMeta>();
  const compiled = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0], { registry });
  return {
    written: schema,
    spendOnCheck: (input, budget) => spendOnCheck(schema, input, budget),
    check(input) {
      const { success, data, error } = compiled.safeParse(input);
      if (success)
        return isLongerThan(data, MAX_INPUT_CHARS) ? { tooLarge: true } : { value: data as JsonValue };
      const issues = error.issues.slice(0, MAX_FAULTS);
      return { issues: problemsOf(issues, input) as Array<{ path: Path; message: string }> };
    },
  };
}

/**
 * Compiles the schema at a path of a definition. Adds an issue and returns null if the schema is unusable. `count` is
 * shared by all schemas of the definition.
 */
export function schemaAt(
  path: Path,
  schema: object,
  { issues, count }: { issues: DefinitionIssue[]; count: PartCount },
): InputSchema | null {
  try {
    return compileInputSchema(schema, count);
  } catch (error) {
    const { message } = error as Error;
    issues.push({ path, message: `is not a JSON Schema that can be used: ${message}` });
    return null;
  }
}
