const MASK = '[redacted]';

/** Matches names of fields whose values must never be logged, at any depth. */
const SECRET_NAME =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|x-internal-secret|x-svc-service-key|.*(?:secret|password|passwd|token|api-?key|private-?key|credential|signature).*)$/i;

/**
 * Matches values that are recognizable as secrets: bearer credentials, JWTs, and keys with a prefix of svc or of a
 * common provider.
 */
const SECRET_SHAPE =
  /\b(?:Bearer|Basic)\s+[\w.~+/=-]{6,}|\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*|\bwhsec_[\w+/=-]{6,}|\b(?:svc[srwe]_|sk_live_|sk_test_|gh[pousr]_|xox[abpr]-)[\w-]{6,}/g;

/** Matches a 256-bit secret in base64url (43 characters), because generated webhook secrets have no prefix. */
const BARE_SECRET = /(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])(?=[\w-]*\d)[\w-]{43}(?![\w-])/g;

/** Minimum length of a registered secret. Masking shorter values would also mask ordinary words. */
const MIN_VALUE_CHARS = 8;

/**
 * Matches the secrets registered with `keepSecret`, such as static tokens of the config. These secrets have no
 * recognizable format.
 */
let secretValues: RegExp | undefined;
const knownSecrets = new Set<string>();

/**
 * Registers secrets, which all loggers of this process mask from now on. Values shorter than MIN_VALUE_CHARS are
 * ignored.
 */
export function keepSecret(values: ReadonlyArray<string | null | undefined>): void {
  for (const value of values) if (value && value.length >= MIN_VALUE_CHARS) knownSecrets.add(value);
  const patterns = [...knownSecrets]
    .sort((a, b) => b.length - a.length)
    .map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  if (patterns.length > 0) secretValues = new RegExp(patterns.join('|'), 'g');
}

/** Masks values in the format of a credential, and values registered with `keepSecret`. */
export function redactText(text: string): string {
  const masked = text.replace(SECRET_SHAPE, MASK).replace(BARE_SECRET, MASK);
  return secretValues ? masked.replace(secretValues, MASK) : masked;
}

/** Matches names of a model's token counts (`inputTokens`), which are not secret. */
const COUNT_NAME = /tokens$/i;

function isSecret(name: string, value: unknown): boolean {
  if (value === null || typeof value === 'boolean' || !SECRET_NAME.test(name)) return false;
  return !(typeof value === 'number' && COUNT_NAME.test(name));
}

/** Copies a value for a log. Masks secrets, limits depth and width, and converts errors to plain data. */
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

/** Masks secrets like `redact`, but truncates nothing, because programs use the result later. */
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
