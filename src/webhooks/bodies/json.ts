import { isUtf8 } from 'node:buffer';
import { LIMITS } from '../../contracts/index.ts';
import { nestsDeeperThan } from '../../kit/data/json.ts';
import { BodyFault, type ParsedBody } from './parsed-body.ts';

/**
 * Parses a JSON body. Deeply nested JSON is rejected before parsing. Invalid UTF-8 is rejected, because all invalid
 * bytes decode to the same replacement character. Different delivery ids could then become equal.
 */
export function parseJson(body: Buffer): ParsedBody {
  return isUtf8(body) ? parseJsonText(body.toString('utf8')) : { fault: 'it is not UTF-8' };
}

export function parseJsonText(text: string): ParsedBody {
  if (nestsDeeperThan(text, LIMITS.jsonDepth))
    return { fault: `it nests deeper than ${LIMITS.jsonDepth} levels` };
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

/** Returns fields in which the value of `jsonField`, if present, is the parsed JSON. Throws BodyFault for other text. */
export function withJsonField(fields: Record<string, unknown>, jsonField: string | undefined): unknown {
  if (jsonField === undefined || typeof fields[jsonField] !== 'string') return fields;
  const parsed = parseJsonText(fields[jsonField]);
  if (parsed.fault !== undefined)
    throw new BodyFault(`its field ${JSON.stringify(jsonField)} is not valid JSON: ${parsed.fault}`);
  // The field adds one level. The limit of the whole value is checked, because later readers apply it again.
  if (nestsDeeperThan(fields[jsonField], LIMITS.jsonDepth - 1))
    throw new BodyFault(`it nests deeper than ${LIMITS.jsonDepth} levels`);
  fields[jsonField] = parsed.value;
  return fields;
}
