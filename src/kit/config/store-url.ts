import type { PlatformConfig } from '../../contracts/index.ts';
import { PlatformError } from '../errors/errors.ts';
import type { Environment } from './secret-ref.ts';

type StoreConfig = PlatformConfig['store'];

const SQLITE = 'sqlite:';
const REFERENCE = /\$\{([A-Za-z_]\w*)\}/g;

/** Returns true if the store is PostgreSQL. A URL that is a single reference to a variable counts as PostgreSQL. */
export function usesPostgres({ url }: StoreConfig): boolean {
  return !url.startsWith(SQLITE);
}

/** Returns the folder for files of this machine, relative to the project. With SQLite, the URL names it. */
export function dataFolderOf({ url, dataDir }: StoreConfig): string {
  return url.startsWith(SQLITE) ? url.slice(SQLITE.length) : (dataDir ?? '.svc');
}

/**
 * Returns the URL of PostgreSQL with its `${NAME}` references resolved, or null for SQLite. Values are percent-encoded
 * unless the reference is the whole URL, so that a password may contain any character. Throws CONFIG_NOT_RESOLVED if a
 * variable is not set, and VALIDATION_ERROR if the result is not the URL of a PostgreSQL database.
 */
export function postgresUrlOf(store: StoreConfig, env: Environment): string | null {
  if (!usesPostgres(store)) return null;
  const isWhole = /^\$\{\w+\}$/.test(store.url);
  const url = store.url.replace(REFERENCE, (_, name: string) => {
    const value = variableOf(name, store.url, env);
    return isWhole ? value : encodeURIComponent(value);
  });
  if (!isPostgresUrl(url))
    throw new PlatformError(
      'VALIDATION_ERROR',
      `store.url is not the URL of a PostgreSQL database. It must have the form postgres://<user>:<password>@<host>:<port>/<database>; put a password with special characters into a variable, as in postgres://svc:\${DB_PASSWORD}@db:5432/svc.`,
      { details: { key: 'store.url' } },
    );
  return url;
}

/** Returns the secrets within `store.url` that are set, in every spelling, for the redactor. */
export function storeSecrets({ url }: StoreConfig, env: Environment): string[] {
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

function variableOf(name: string, url: string, env: Environment): string {
  const value = env[name];
  if (value) return value;
  const shown = url.replace(/:\/\/[^/@]*@/, '://[redacted]@');
  throw new PlatformError(
    'CONFIG_NOT_RESOLVED',
    `store.url is ${shown}, but ${name} is not set. Set it in the environment of \`svc up\` or in the .env beside the config.`,
    { details: { key: 'store.url', variable: name } },
  );
}

function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text) && new URL(text).pathname.length > 1;
}
