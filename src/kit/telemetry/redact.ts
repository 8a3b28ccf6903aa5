import { PlatformError } from '../errors/errors.ts';
import {
  hasTenantSecrets,
  MASK,
  maskKnownSecrets,
  maskTenantSecrets,
  maskTenantSecretsIn,
} from './known-secrets.ts';

export { keepSecret, keepTenantSecret, maskTenantSecrets, maskTenantSecretsIn } from './known-secrets.ts';

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

/**
 * Masks values in the format of a credential, and registered secrets. With a tenant, secrets of other tenants are not
 * masked.
 */
export function redactText(text: string, tenantId?: string): string {
  // Registered secrets are first, because the format of a credential can match only a part of one.
  return maskKnownSecrets(text, tenantId).replace(SECRET_SHAPE, MASK).replace(BARE_SECRET, MASK);
}

/** Matches names of a model's token counts (`inputTokens`), which are not secret. */
const COUNT_NAME = /tokens$/i;

function isSecret(name: string, value: unknown): boolean {
  if (value === null || typeof value === 'boolean' || !SECRET_NAME.test(name)) return false;
  return !(typeof value === 'number' && COUNT_NAME.test(name));
}

/** Copies a value for a log. Masks secrets, limits depth and width, and converts errors to plain data. */
export function redact(value: unknown, tenantId?: string, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value, tenantId);
  if (typeof value === 'number') return redactNumber(value, tenantId);
  if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function')
    return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > 6) return '[deep]';
  if (value instanceof Error) return redactError(value, tenantId, depth);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.slice(0, 100).map((item) => redact(item, tenantId, depth + 1));
  const copy: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value).slice(0, 200)) {
    copy[maskKnownSecrets(name, tenantId)] = isSecret(name, item) ? MASK : redact(item, tenantId, depth + 1);
  }
  return copy;
}

/** Stands for no tenant: only registered secrets of the platform are masked. */
export const NO_TENANT = '';

/** Masks secrets like `redact`, but truncates nothing, because programs use the result later. */
export function redactJson<Value extends object>(value: Value, tenantId?: string): Value {
  return JSON.parse(
    JSON.stringify(value, (name, item: unknown) => {
      if (isSecret(name, item)) return MASK;
      return typeof item === 'string' ? redactText(item, tenantId) : item;
    }),
  );
}

function redactNumber(value: number, tenantId: string | undefined): unknown {
  const text = String(value);
  return maskKnownSecrets(text, tenantId) === text ? value : MASK;
}

function redactError(error: Error, tenantId: string | undefined, depth: number): Record<string, unknown> {
  const { code } = error as { code?: unknown };
  return {
    name: error.name,
    message: redactText(error.message, tenantId),
    ...(code === undefined ? {} : { code }),
    ...(error.stack ? { stack: redactText(error.stack, tenantId) } : {}),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, tenantId, depth + 1) }),
  };
}

/** Masks the tenant's secrets in a thrown value with its stack and causes. Returns the value itself if it has none. */
export function maskedError(thrown: unknown, tenantId: string): unknown {
  if (!hasTenantSecrets(tenantId)) return thrown;
  if (!(thrown instanceof Error)) return maskTenantSecretsIn(thrown, tenantId);
  const mask = (text: string): string => maskTenantSecrets(text, tenantId);
  const message = mask(thrown.message);
  const stack = thrown.stack === undefined ? undefined : mask(thrown.stack);
  const cause = thrown.cause === undefined ? undefined : maskedError(thrown.cause, tenantId);
  const details = thrown instanceof PlatformError ? maskTenantSecretsIn(thrown.details, tenantId) : undefined;
  const isSame =
    message === thrown.message &&
    stack === thrown.stack &&
    cause === thrown.cause &&
    (!(thrown instanceof PlatformError) || details === thrown.details);
  if (isSame) return thrown;
  const masked =
    thrown instanceof PlatformError
      ? new PlatformError(thrown.code, message, { details: details ?? {}, cause, headers: thrown.headers })
      : Object.assign(new Error(message, cause === undefined ? {} : { cause }), { name: thrown.name });
  return stack === undefined ? masked : Object.assign(masked, { stack });
}
