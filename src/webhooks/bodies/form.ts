import { isUtf8 } from 'node:buffer';
import { withJsonField } from './json.ts';
import { BodyFault, FieldMap, faultsOf, type ParsedBody, payloadFrom } from './parsed-body.ts';

/**
 * Parses an `application/x-www-form-urlencoded` body by the rules of the URL standard, except that a value which is not
 * UTF-8 is rejected. The value of a field is a string, or an array for a repeated field.
 */
export function parseForm(body: Buffer, jsonField?: string): ParsedBody {
  return faultsOf(() => {
    const fields = new FieldMap<string>();
    for (const [name, value] of formPairs(body)) fields.add(name, value);
    return payloadFrom(withJsonField(fields.values, jsonField));
  });
}

/** Yields the decoded fields in order, so that a form with too many fields is not decoded completely. */
function* formPairs(body: Buffer): Generator<[string, string]> {
  if (!isUtf8(body)) throw new BodyFault('it is not UTF-8');
  const text = body.toString('utf8');
  for (let start = 0; start <= text.length; ) {
    const next = text.indexOf('&', start);
    const end = next === -1 ? text.length : next;
    if (end > start) {
      // Searched in the field only. A search in the rest of the form would take quadratic time.
      const field = text.slice(start, end);
      const assign = field.indexOf('=');
      const nameEnd = assign === -1 ? field.length : assign;
      yield [decoded(field.slice(0, nameEnd)), decoded(field.slice(nameEnd + 1))];
    }
    start = end + 1;
  }
}

const HEX_BYTE = /%[0-9A-Fa-f]{2}/;

/** Decodes `+` and percent-encoded bytes. As the URL standard says, `%` without two hex digits stays as it is. */
function decoded(text: string): string {
  const spaced = text.replaceAll('+', ' ');
  if (!HEX_BYTE.test(spaced)) return spaced;
  const bytes = Buffer.from(spaced);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const high = bytes[i] === 0x25 ? digit(bytes[i + 1]) : -1;
    const low = high === -1 ? -1 : digit(bytes[i + 2]);
    if (low !== -1) i += 2;
    bytes[length++] = low === -1 ? bytes[i]! : high * 16 + low;
  }
  const result = bytes.subarray(0, length);
  if (!isUtf8(result)) throw new BodyFault('a field is not UTF-8');
  return result.toString('utf8');
}

function digit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
