import { isLongerThan } from '../../../../kit/data/json.ts';
import { problemsOf } from '../../../../kit/data/schema-problems.ts';
import type { Budget } from '../../../../kit/expressions/budget.ts';
import { spendOnCheck } from '../../../../kit/schemas/check-cost.ts';
import { compileJsonSchema } from '../../../../kit/schemas/json-schema.ts';
import type { PartCount } from '../../../../kit/schemas/schema-faults.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { DefinitionIssue, Path } from './templates.ts';

/** Maximum size of an input in characters of JSON, including defaults. */
export const MAX_INPUT_CHARS = 1024 * 1024;

/** Maximum number of faults reported for one input. */
const MAX_FAULTS = 100;

/** Kind of value that a schema checks: the input of a run, the payload of a signal, or the data of an approval. */
export type CheckedPart = 'input' | 'payload' | 'data';

/**
 * Result of a check. Contains the value with defaults filled in, or the faults of the value. `tooLarge` means that the
 * value exceeds the size limit.
 */
export type CheckedInput =
  | { value: JsonValue }
  | { issues: ReadonlyArray<{ path: Path; message: string }> }
  | { tooLarge: true };

export interface InputSchema {
  /** JSON Schema as written in the definition, so that a worker thread can compile the schema again. */
  readonly written: object;
  /** Checks an input and fills in defaults. Throws RangeError if the input is nested too deeply. */
  check(input: JsonValue): CheckedInput;
  /** Charges the maximum cost of a check to the budget. Throws OverBudget. */
  spendOnCheck(input: JsonValue, budget: Budget): void;
}

/** Compiles a JSON Schema. Throws an error with the reason if the schema is unusable. */
export function compileInputSchema(schema: object, count?: PartCount): InputSchema {
  const compiled = compileJsonSchema(schema, count);
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

/** Returns the reason why a JSON Schema is unusable, or undefined for a usable one. */
export function unusableSchema(schema: object): string | undefined {
  try {
    compileInputSchema(schema);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Compiles the schema at a path of a definition. If the schema is unusable, adds an issue and returns null. All schemas
 * of a definition share the counter `count`.
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
