const MASK = '[redacted]';

/** Names whose values never reach a log, wherever they stand. */
const SECRET_NAME =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|x-internal-secret|x-svc-service-key|.*(?:secret|password|passwd|token|api-?key|private-?key|credential|signature).*)$/i;

/** Values that are secrets by their shape: bearer credentials, JWTs, our own and common providers' prefixes. */
const SECRET_SHAPE =
  /\b(?:Bearer|Basic)\s+[\w.~+/=-]{6,}|\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*|\b(?:svc[srwe]_|whsec_|sk_live_|sk_test_|gh[pousr]_|xox[abpr]-)[\w-]{6,}/g;

/** Masks whatever in the text has the shape of a credential. */
export function redactText(text: string): string {
  return text.replace(SECRET_SHAPE, MASK);
}

/** A copy fit for a log: secrets masked by name and by shape, depth and width bounded, errors as plain data. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function')
    return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > 6) return '[deep]';
  if (value instanceof Error) return redactError(value, depth);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.slice(0, 100).map((item) => redact(item, depth + 1));
  const copy: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value).slice(0, 200)) {
    copy[name] =
      SECRET_NAME.test(name) && item !== null && typeof item !== 'boolean' ? MASK : redact(item, depth + 1);
  }
  return copy;
}

function redactError(error: Error, depth: number): Record<string, unknown> {
  const { code } = error as { code?: unknown };
  return {
    name: error.name,
    message: redactText(error.message),
    ...(code === undefined ? {} : { code }),
    ...(error.stack ? { stack: redactText(error.stack) } : {}),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1) }),
  };
}
