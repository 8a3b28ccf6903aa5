import type { z } from 'zod';
import type { JsonValue } from '../../../../kit/data/json-value.ts';
import { problemsOf } from '../../../../kit/data/schema-problems.ts';
import { Budget, OverBudget } from '../../../../kit/expressions/budget.ts';
import { spendOnCheck } from '../../../../kit/schemas/check-cost.ts';
import { compileJsonSchema } from '../../../../kit/schemas/json-schema.ts';
import type { JsonSchema } from '../../../plugin-runtime/schemas/schema-bundle.ts';

export interface DataIssue {
  /** Path of the fault in the message, such as `data.items.0.price`. */
  path: string;
  message: string;
}

/** Checks a value in the sandbox of the plugin that declares the schema. */
export type CheckInPlugin = (schema: object, value: JsonValue) => Promise<DataIssue[]>;

/** About 20 ms. The event loop of the gateway is blocked for this time at most. */
const MAX_OPERATIONS = 200_000;
const MAX_ISSUES = 100;

/**
 * Schema of the data of an event type. A check whose cost can be predicted runs here, and any other one, such as
 * `pattern`, in the sandbox of the plugin: a schema of a plugin must not block the gateway. @spec docs/decisions/0253
 */
export class EventSchema {
  readonly schema: JsonSchema;
  readonly #checkInPlugin: CheckInPlugin;
  #compiled: z.ZodType | undefined;

  constructor(schema: JsonSchema, checkInPlugin: CheckInPlugin) {
    this.schema = schema;
    this.#checkInPlugin = checkInPlugin;
  }

  /** Returns the faults of the data. */
  async check(data: JsonValue): Promise<DataIssue[]> {
    if (!isCheap(this.schema, data)) {
      const issues = await this.#checkInPlugin(this.schema, data);
      return issues.map(({ path, message }) => ({ path: inData(path), message }));
    }
    this.#compiled ??= compileJsonSchema(this.schema);
    const { error } = this.#compiled.safeParse(data);
    if (!error) return [];
    return problemsOf(error.issues, data)
      .slice(0, MAX_ISSUES)
      .map(({ path, message }) => ({ path: inData(path.map(String).join('.')), message }));
  }
}

function isCheap(schema: JsonSchema, data: JsonValue): boolean {
  try {
    spendOnCheck(schema, data, new Budget(MAX_OPERATIONS, false));
    return true;
  } catch (error) {
    if (error instanceof OverBudget) return false;
    throw error;
  }
}

function inData(path: string): string {
  return path === '' ? 'data' : `data.${path}`;
}
