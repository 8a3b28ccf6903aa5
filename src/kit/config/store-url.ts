import type { PlatformConfig } from '../../contracts/index.ts';
import { PlatformError } from '../errors/errors.ts';
import type { Environment } from './secret-ref.ts';

type StoreConfig = PlatformConfig['store'];

const SQLITE = 'sqlite:';
const REFERENCE = /\$\{([A-Za-z_]\w*)\}/g;

/** Returns whether the store is PostgreSQL. A URL that is a single variable reference also counts as PostgreSQL. */
export function usesPostgres({ url }: StoreConfig): boolean {
  return !url.startsWith(SQLITE);
}

/** Returns the data folder, relative to the project folder. For SQLite, the store URL contains the path. */
export function dataFolderOf({ url, dataDir }: StoreConfig): string {
  return url.startsWith(SQLITE) ? url.slice(SQLITE.length) : (dataDir ?? '.svc');
}

/**
 * Returns the PostgreSQL URL with resolved `${NAME}` references, or null for SQLite. Throws CONFIG_NOT_RESOLVED if a
 * variable is not set. Throws VALIDATION_ERROR if the result is not a PostgreSQL URL.
 */
export function postgresUrlOf(store: StoreConfig, env: Environment): string | null {
  if (!usesPostgres(store)) return null;
  const url = resolved(store.url, 'store.url', env);
  if (isPostgresUrl(url)) return url;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `store.url is not the URL of a PostgreSQL database. It must have the form postgres://<user>:<password>@<host>:<port>/<database>; put a password with special characters into a variable, as in postgres://svc:\${DB_PASSWORD}@db:5432/svc.`,
    { details: { key: 'store.url' } },
  );
}

/** Returns the URL of Redis or Valkey, or null if no URL is configured. Throws the same errors as `postgresUrlOf`. */
export function redisUrlOf({ url: configured }: PlatformConfig['cache'], env: Environment): string | null {
  if (configured === null) return null;
  const url = resolved(configured, 'cache.url', env);
  if (/^rediss?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `cache.url is not the URL of Redis or Valkey. It must have the form redis://<user>:<password>@<host>:<port>/<number>, or rediss:// for TLS; put a password with special characters into a variable, as in redis://:\${CACHE_PASSWORD}@cache:6379.`,
    { details: { key: 'cache.url' } },
  );
}

/**
 * Resolves `${NAME}` references. Values are percent-encoded, so that a password can contain any character. A value that
 * is the whole URL is not encoded.
 */
function resolved(text: string, key: string, env: Environment): string {
  const isWhole = /^\$\{\w+\}$/.test(text);
  return text.replace(REFERENCE, (_, name: string) => {
    const value = variableOf(name, { key, url: text }, env);
    return isWhole ? value : encodeURIComponent(value);
  });
}

/** Returns the passwords and resolved variables of the store URL for the redactor, both plain and percent-encoded. */
export function storeSecrets({ url }: Pick<StoreConfig, 'url'>, env: Environment): string[] {
  const referenced = [...url.matchAll(REFERENCE)].flatMap(([, name]) => env[name!] ?? []);
  const whole = [url, ...referenced].flatMap(passwordsIn);
  return [...new Set([...whole, ...referenced.flatMap((value) => [value, encodeURIComponent(value)])])];
}

function passwordsIn(text: string): string[] {
  const password = /^[a-z]+:\/\/[^:/@]*:([^/@]+)@/i.exec(text)?.[1];
  if (password === undefined || password.includes('${')) return [];
  return [password, decodedText(password)];
}

function decodedText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function variableOf(name: string, { key, url }: { key: string; url: string }, env: Environment): string {
  const value = env[name];
  if (value) return value;
  const shown = url.replace(/:\/\/[^/@]*@/, '://[redacted]@');
  throw new PlatformError(
    'CONFIG_NOT_RESOLVED',
    `${key} is ${shown}, but ${name} is not set. Set it in the environment of \`svc up\` or in the .env beside the config.`,
    { details: { key, variable: name } },
  );
}

function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text) && new URL(text).pathname.length > 1;
}
