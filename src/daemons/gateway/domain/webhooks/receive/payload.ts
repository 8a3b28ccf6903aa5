import { isUtf8 } from 'node:buffer';
import { LIMITS } from '../../../../../contracts/index.ts';
import { nestsDeeperThan } from '../../../../../kit/data/json.ts';

/** A request body that is valid JSON. */
export interface JsonPayload {
  value: unknown;
  /** Text of the body, kept so that the value does not have to be serialized again. */
  text: string;
}

export type ParsedBody =
  | (JsonPayload & { fault?: undefined })
  | { value?: undefined; text?: undefined; fault: string };

/** Returns a function that parses the body on its first call. Deeply nested JSON is rejected before parsing. */
export function parseOnce(body: Buffer): () => ParsedBody {
  let parsed: ParsedBody | undefined;
  return () => {
    // Invalid UTF-8 is rejected, because all invalid bytes decode to the same replacement character. Different delivery
    // ids could then become equal.
    parsed ??= isUtf8(body) ? parseBody(body) : { fault: 'it is not UTF-8' };
    return parsed;
  };
}

/** Parses the stored body of an accepted delivery, which was validated as JSON on receipt. */
export function payloadOf(body: Uint8Array | null): JsonPayload {
  const parsed = parseBody(Buffer.from(body ?? []));
  return parsed.fault === undefined ? parsed : { value: undefined, text: '' };
}

function parseBody(body: Buffer): ParsedBody {
  const text = body.toString('utf8');
  if (nestsDeeperThan(text, LIMITS.jsonDepth))
    return { fault: `it nests deeper than ${LIMITS.jsonDepth} levels` };
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}
