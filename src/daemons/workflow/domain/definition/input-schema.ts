import { z } from 'zod';
import { isLongerThan } from '../../../../kit/json.ts';
import { problemsOf } from '../../../../kit/schema-problems.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { Budget } from './budget.ts';
import { spendOnCheck } from './check-cost.ts';
import { type PartCount, schemaFault } from './schema-faults.ts';
import type { DefinitionIssue, Path } from './templates.ts';

/** Characters of JSON that the input of a run may take, its defaults included. */
export const MAX_INPUT_CHARS = 1024 * 1024;

/** Faults of one input that are told: each names its place and what is allowed there. */
const MAX_FAULTS = 100;

/** What is held against a schema: the input of a run, or the payload of a signal. */
export type CheckedPart = 'input' | 'payload';

/** A value with defaults filled in, or what is wrong with it. */
export type CheckedInput =
  | { value: JsonValue }
  | { issues: ReadonlyArray<{ path: Path; message: string }> }
  | { tooLarge: true };

export interface InputSchema {
  /** As written, for another thread to compile. */
  readonly written: object;
  /** Throws RangeError for an input that is nested too deeply for it. */
  check(input: JsonValue): CheckedInput;
  /** Spends what a check costs at most. Throws OverBudget. */
  spendOnCheck(input: JsonValue, budget: Budget): void;
}

/** Compiles a JSON Schema. Throws with a message for one that cannot be used. */
export function compileInputSchema(schema: object, count?: PartCount): InputSchema {
  const fault = schemaFault(schema, count);
  if (fault) throw new Error(fault);
  // The library's own registry would keep each schema with an "id" for good.
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

/** The schema at a path of a definition, whose parts are counted together; null, with an issue, where it cannot be used. */
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
