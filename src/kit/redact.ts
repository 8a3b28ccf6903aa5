const MASK = '[redacted]';

/** Names whose values never reach a log, wherever they stand. */
const SECRET_NAME =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|x-internal-secret|x-svc-service-key|.*(?:secret|password|passwd|token|api-?key|private-?key|credential|signature).*)$/i;

/** Values that are secrets by their shape: bearer credentials, JWTs, our own and common providers' prefixes. */
const SECRET_SHAPE =
  /\b(?:Bearer|Basic)\s+[\w.~+/=-]{6,}|\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*|\bwhsec_[\w+/=-]{6,}|\b(?:svc[srwe]_|sk_live_|sk_test_|gh[pousr]_|xox[abpr]-)[\w-]{6,}/g;

/** 256 bits as we write them, which is all that a webhook secret of our making shows: 43 characters of base64url. */
const SECRET_LENGTH = /(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])(?=[\w-]*\d)[\w-]{43}(?![\w-])/g;

/** Shorter ones would mask ordinary words. */
const SHORTEST_VALUE = 8;

/** The platform's own secrets that have no shape to know them by: keys and static tokens of the config. */
let secretValues: RegExp | undefined;
const known = new Set<string>();

/**
 * Masks these very values from now on wherever they stand, in this whole process: what must never be written must not
 * depend on which logger writes it.
 */
export function keepSecret(values: ReadonlyArray<string | null | undefined>): void {
  for (const value of values) if (value && value.length >= SHORTEST_VALUE) known.add(value);
  const patterns = [...known]
    .sort((a, b) => b.length - a.length)
    .map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  if (patterns.length > 0) secretValues = new RegExp(patterns.join('|'), 'g');
}

/** Masks whatever in the text has the shape of a credential, or is one that `keepSecret` was told of. */
export function redactText(text: string): string {
  const shapeless = text.replace(SECRET_SHAPE, MASK).replace(SECRET_LENGTH, MASK);
  return secretValues ? shapeless.replace(secretValues, MASK) : shapeless;
}

/** How many tokens a model took is no token. */
const COUNT_NAME = /tokens$/i;

function isSecret(name: string, value: unknown): boolean {
  if (value === null || typeof value === 'boolean' || !SECRET_NAME.test(name)) return false;
  return !(typeof value === 'number' && COUNT_NAME.test(name));
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
    copy[name] = isSecret(name, item) ? MASK : redact(item, depth + 1);
  }
  return copy;
}

/** Masks the same and cuts nothing off: for JSON that programs read later, such as the error of a step. */
export function redactJson<Value extends object>(value: Value): Value {
  return JSON.parse(
    JSON.stringify(value, (name, item: unknown) => {
      if (isSecret(name, item)) return MASK;
      return typeof item === 'string' ? redactText(item) : item;
    }),
  );
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
