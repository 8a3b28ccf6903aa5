import type { QueueItemContent, QueueItemRecord } from '../../../../store/ports/index.ts';

/**
 * Returns the content of an item for programs. `body` is the JSON value. `bodyBase64` is added unless `body` as compact
 * JSON has the same bytes, because parsers round large numbers and drop repeated keys.
 */
export function contentOf({ headers, body }: QueueItemContent, { raw = false } = {}) {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const text = bytes.toString();
  const value = jsonOf(text);
  const isWhole = value !== undefined && JSON.stringify(value) === text && !text.includes('\ufffd');
  return {
    headers: headersOf(headers),
    body: value ?? null,
    ...(isWhole && !raw ? {} : { bodyBase64: bytes.toString('base64') }),
  };
}

export function viewOf(record: QueueItemRecord) {
  const { id, deliveryId, orderKey, status, attempt, receivedAt, availableAt, ...more } = record;
  const { leasedUntil, endedAt, lastError, bodyBytes } = more;
  return {
    ...{ id, deliveryId, orderKey, status, attempt, receivedAt, availableAt, leasedUntil, endedAt },
    ...{ lastError, bodyBytes },
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns headers by their names in lower case. The values of repeated headers are joined, as HTTP allows. */
function headersOf(text: string): Record<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of JSON.parse(text) as Array<[string, string]>) {
    const known = headers.get(name.toLowerCase());
    headers.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`);
  }
  return Object.fromEntries(headers);
}
