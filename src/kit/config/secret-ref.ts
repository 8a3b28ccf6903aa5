import { SECRET_NAME } from '../../contracts/secret-name.ts';
import { PlatformError } from '../errors/errors.ts';

export type Environment = Record<string, string | undefined>;

/** Namespace of the stored secrets that the config can reference. */
export const OPERATOR_NAMESPACE = 'default';

const STORED = new RegExp(`^\\$\\{secret:(${SECRET_NAME})\\}$`);
const VARIABLE = /^\$\{(\w+)\}$/;

/** Returns the name of a stored secret that the reference `${secret:NAME}` names. */
export function storedSecretOf(ref: string | null): string | undefined {
  return ref === null ? undefined : STORED.exec(ref)?.[1];
}

/**
 * Reads a stored secret of the operator's namespace. Resolves to undefined if there is no such secret. Nothing is
 * cached.
 */
export type ReadStoredSecret = (name: string) => Promise<string | undefined>;

/**
 * Resolves a `${NAME}` reference from the environment, or a `${secret:NAME}` reference from the stored secrets. Throws
 * ADAPTER_NOT_CONFIGURED if the variable or the secret is not set.
 */
export async function resolveAnySecret(
  ref: string | null,
  { env, stored }: { env: Environment; stored: ReadStoredSecret },
  at: string,
): Promise<string | undefined> {
  const name = storedSecretOf(ref);
  if (name === undefined) return resolveSecret(ref, env, at);
  const value = await stored(name);
  if (value !== undefined) return value;
  throw new PlatformError(
    'ADAPTER_NOT_CONFIGURED',
    `${at} is ${ref}, but the namespace ${OPERATOR_NAMESPACE} has no secret ${name}. Set it with \`svc secrets set ${name} --tenant ${OPERATOR_NAMESPACE}\`.`,
    { details: { key: at, secret: name } },
  );
}

/**
 * Resolves a `${NAME}` reference from the environment. Returns undefined if `ref` is null. Throws
 * ADAPTER_NOT_CONFIGURED if the variable is not set.
 */
export function resolveSecret(ref: string | null, env: Environment, at: string): string | undefined {
  if (ref === null) return undefined;
  const name = ref.slice(2, -1);
  const value = env[name];
  if (value) return value;
  throw new PlatformError(
    'ADAPTER_NOT_CONFIGURED',
    `${at} is ${ref}, but ${name} is not set. Set it in the environment of \`svc up\` or in the .env beside the config, and restart.`,
    { details: { key: at, variable: name } },
  );
}

/** Returns the stored secrets that a section of the config references, with the config keys. */
export function storedSecretsIn(config: unknown, at: string): NamedSecret[] {
  return referencesIn(config, at, STORED);
}

interface NamedSecret {
  /** Path of the config key that contains the reference, such as `adapters.llm.apiKey`. */
  key: string;
  /** Name of the stored secret or of the variable. */
  name: string;
}

function referencesIn(config: unknown, at: string, pattern: RegExp): NamedSecret[] {
  if (typeof config === 'string') {
    const name = pattern.exec(config)?.[1];
    return name === undefined ? [] : [{ key: at, name }];
  }
  if (typeof config !== 'object' || config === null) return [];
  return Object.entries(config).flatMap(([name, inner]) => referencesIn(inner, `${at}.${name}`, pattern));
}

/**
 * Returns the values of all referenced secrets that are set. The redactor needs the values, because a model's error
 * message can contain the rejected key.
 */
export function secretValues(config: unknown, env: Environment): string[] {
  return referencesIn(config, '', VARIABLE).flatMap(({ name }) => env[name] ?? []);
}

/** Returns the variables that a section of the config references but the environment does not set. */
export function unsetSecrets(config: unknown, env: Environment, at: string): NamedSecret[] {
  return referencesIn(config, at, VARIABLE).filter(({ name }) => !env[name]);
}
