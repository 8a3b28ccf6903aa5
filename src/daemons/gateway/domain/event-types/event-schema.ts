import type { JsonValue } from '../../../../kit/data/json-value.ts';
import { Budget, OverBudget } from '../../../../kit/expressions/budget.ts';
import { spendOnCheck } from '../../../../kit/schemas/check-cost.ts';
import { compileJsonCheck, type JsonCheck } from '../../../../kit/schemas/json-check.ts';
import { schemaFault } from '../../../../kit/schemas/schema-faults.ts';
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

/**
 * Schema of the data of an event type. A check whose cost can be predicted runs here, and any other one, such as
 * `pattern`, in the sandbox of the plugin: a schema of a plugin must not block the gateway. @spec docs/decisions/0253
 */
export class EventSchema {
  readonly schema: JsonSchema;
  readonly #checkInPlugin: CheckInPlugin;
  /** Whether the schema is small enough to be compiled in the gateway. */
  readonly #isSmall: boolean;
  #compiled: Promise<JsonCheck> | undefined;

  constructor(schema: JsonSchema, checkInPlugin: CheckInPlugin) {
    this.schema = schema;
    this.#checkInPlugin = checkInPlugin;
    this.#isSmall = schemaFault(schema) === undefined;
  }

  /** Returns the faults of the data. */
  async check(data: JsonValue): Promise<DataIssue[]> {
    const issues =
      this.#isSmall && isCheap(this.schema, data)
        ? await this.#checkHere(data)
        : await this.#checkInPlugin(this.schema, data);
    return issues.map(({ path, message }) => ({ path: path === '' ? 'data' : `data.${path}`, message }));
  }

  async #checkHere(data: JsonValue): Promise<DataIssue[]> {
    this.#compiled ??= compileJsonCheck(this.schema);
    return (await this.#compiled)(data);
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
