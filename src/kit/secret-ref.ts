import { PlatformError } from './errors.ts';

export type Environment = Record<string, string | undefined>;

/** The value that `${NAME}` stands for; undefined for null. Throws ADAPTER_NOT_CONFIGURED where the variable is not set. */
export function resolveSecret(ref: string | null, env: Environment, at: string): string | undefined {
  if (ref === null) return undefined;
  const name = ref.slice(2, -1);
  const value = env[name];
  if (value) return value;
  throw new PlatformError(
    'ADAPTER_NOT_CONFIGURED',
    `${at} is ${ref}, and ${name} is not set. Set it in the environment of \`svc up\` or in the .env beside the config, and restart.`,
    { details: { key: at, variable: name } },
  );
}

/** Every secret that is set, for the redactor: a model's endpoint may repeat the key that it refuses. */
export function secretValues(config: unknown, env: Environment): string[] {
  if (typeof config === 'string') {
    const value = /^\$\{\w+\}$/.test(config) ? env[config.slice(2, -1)] : undefined;
    return value ? [value] : [];
  }
  if (typeof config !== 'object' || config === null) return [];
  return Object.values(config).flatMap((inner) => secretValues(inner, env));
}
