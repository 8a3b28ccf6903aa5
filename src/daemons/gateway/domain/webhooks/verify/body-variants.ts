/**
 * Maximum size in bytes of a body that is serialized again for an explanation. Larger bodies would delay other
 * requests.
 */
const MAX_RESERIALIZED_BYTES = 256 * 1024;

export type BodyVariant = [reason: string, hint: string, body: Buffer];

/** Returns bodies that the sender may have signed instead of the one that arrived. */
export function bodyVariants(body: Buffer): BodyVariant[] {
  const hintNewline = 'A trailing newline of the body was added or removed in transit.';
  const newline: BodyVariant[] = [
    ['body_newline', hintNewline, Buffer.concat([body, Buffer.from('\n')])],
    ['body_newline', hintNewline, Buffer.from(body.toString().trimEnd())],
  ];
  if (body.length > MAX_RESERIALIZED_BYTES) return newline;
  const hint =
    'The signature covers the same JSON in another formatting: the sender, or a proxy, parses and re-serializes the body. Sign the exact bytes that are sent.';
  try {
    const value: unknown = JSON.parse(body.toString());
    const compact = JSON.stringify(value);
    const spaced = compact && spacedJson(value);
    const written = [compact, JSON.stringify(value, null, 2), JSON.stringify(value, null, 4), spaced];
    return [
      ...newline,
      ...written.map((text): BodyVariant => ['reserialised_json', hint, Buffer.from(text ?? '')]),
    ];
  } catch {
    return newline;
  }
}

/** Serializes JSON with the same spaces as Python's `json.dumps`. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(', ')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, item]) => `${JSON.stringify(name)}: ${spacedJson(item)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}
