import { isRecord } from '../data/is-record.ts';
import type { JsonValue } from '../data/json-value.ts';
import { ownValue } from '../data/own-value.ts';
import { type Budget, CHARS_PER_UNIT } from '../expressions/budget.ts';

/** JSON Schema keywords that are checked once per value. The cost depends only on the size of schema and value. */
const PLAIN_KEYWORDS: ReadonlySet<string> = new Set([
  ...['$schema', '$id', '$comment', 'title', 'description', 'examples', 'default', 'deprecated'],
  ...['type', 'enum', 'const', 'properties', 'required', 'additionalProperties', 'items'],
  ...['minItems', 'maxItems', 'minLength', 'maxLength', 'minimum', 'maximum'],
  ...['exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);

const COST_OF_VALUE = 10;
/**
 * Cost of an enum choice that is not a string, in budget units. The schema library compiles each such choice as a
 * separate schema.
 */
const COST_OF_CHOICE = 50;

/**
 * Charges the maximum cost of a check against a JSON Schema, including defaults and fault reports. Called before the
 * check. Throws OverBudget if the cost exceeds the budget, or if an unpredictable cost is not allowed.
 */
export function spendOnCheck(schema: unknown, value: JsonValue | undefined, budget: Budget): void {
  budget.spend(COST_OF_VALUE);
  if (!isRecord(schema)) return;
  const { enum: choices, const: constant, type, default: fallback, properties, required, items } = schema;
  for (const keyword in schema) if (!PLAIN_KEYWORDS.has(keyword)) budget.requireConfinement();
  // If `type` is a list, each nesting level multiplies the number of possible faults. The cost can then not be
  // predicted.
  if (Array.isArray(items) || (Array.isArray(type) && (properties ?? items) !== undefined))
    budget.requireConfinement();
  if (value === undefined) budget.spendOn(fallback);
  spendOnChoices(choices, budget);
  budget.spendOn(constant);
  if (Array.isArray(type)) budget.spend(type.length * COST_OF_CHOICE);
  if (Array.isArray(value)) spendOnItems(items, value, budget);
  else if (isRecord(value)) {
    if (Array.isArray(required)) budget.spend(required.length);
    spendOnKeys(schema, value as Record<string, JsonValue>, budget);
  }
}

function spendOnChoices(choices: unknown, budget: Budget): void {
  budget.spendOn(choices);
  if (Array.isArray(choices) && choices.some((choice) => typeof choice !== 'string'))
    budget.spend(choices.length * COST_OF_CHOICE);
}

function spendOnItems(items: unknown, value: JsonValue[], budget: Budget): void {
  if (!isRecord(items)) budget.spend(value.length);
  else for (const item of value) spendOnCheck(items, item, budget);
}

/** Charges the budget for each key that the schema declares or the object contains. */
function spendOnKeys(
  { properties, additionalProperties }: Record<string, unknown>,
  value: Record<string, JsonValue>,
  budget: Budget,
): void {
  const declared = isRecord(properties) ? properties : {};
  for (const name in declared) {
    budget.spend(name.length / CHARS_PER_UNIT);
    spendOnCheck(declared[name], ownValue(value, name), budget);
  }
  for (const name in value) {
    if (Object.hasOwn(declared, name)) continue;
    budget.spend(1 + name.length / CHARS_PER_UNIT);
    if (isRecord(additionalProperties)) spendOnCheck(additionalProperties, value[name], budget);
  }
}
