import { isLongerThan } from '../../../../kit/data/json.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { invalidInput } from './compile-common.ts';
import { expressionFault } from './definition-faults.ts';
import type { Evaluator } from './evaluator.ts';
import { type CheckedPart, type InputSchema, MAX_INPUT_CHARS } from './input-schema.ts';

/**
 * Returns the value with defaults filled in, or the unchanged value without a schema. Throws VALIDATION_ERROR for an
 * invalid value, PAYLOAD_TOO_LARGE for a value above the size limit, and EXPRESSION_LIMIT_EXCEEDED if the check exceeds
 * a limit.
 */
export async function checkedValue(
  evaluator: Evaluator,
  schema: InputSchema | null,
  value: JsonValue,
  { part, tenantId }: { part: CheckedPart; tenantId: string },
): Promise<JsonValue> {
  if (isLongerThan(value, MAX_INPUT_CHARS)) throw tooLarge(part);
  if (!schema) return value;
  try {
    const checked = await evaluator.check(schema, value, { part, tenantId });
    if ('value' in checked) return checked.value;
    if ('tooLarge' in checked) throw tooLarge(part);
    throw invalidInput(checked.issues, part);
  } catch (error) {
    if (error instanceof RangeError)
      throw invalidInput([{ path: [], message: 'is nested too deeply to be checked' }], part);
    throw expressionFault(error);
  }
}

export function tooLarge(part: CheckedPart): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The ${part} takes more than ${MAX_INPUT_CHARS} characters as JSON, its defaults included; store large data elsewhere and pass its key.`,
  );
}
