import { isUtf8 } from 'node:buffer';
import { LIMITS } from '../../../../../contracts/index.ts';
import { nestsDeeperThan } from '../../../../../kit/data/json.ts';

/** A body that is valid JSON. */
export interface JsonPayload {
  value: unknown;
  /** The parsed text; saves serializing the value again. */
  text: string;
}

export type ParsedBody =
  | (JsonPayload & { fault?: undefined })
  | { value?: undefined; text?: undefined; fault: string };

/** Parses on first use, once; rejects deeply nested text before parsing. */
export function parseOnce(body: Buffer): () => ParsedBody {
  let parsed: ParsedBody | undefined;
  return () => {
    // Decoding invalid bytes would map them to one replacement character, and could merge distinct ids.
    parsed ??= isUtf8(body) ? parseBody(body) : { fault: 'it is not UTF-8' };
    return parsed;
  };
}

/** The payload of an accepted delivery, which is known to be JSON. */
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
