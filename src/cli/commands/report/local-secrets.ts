import { readFileSync } from 'node:fs';
import { keepSecret } from '../../../kit/telemetry/redact.ts';
import type { CommandContext } from '../../context.ts';

const SECRET_VARIABLE = /SECRET|TOKEN|PASSWORD|PASSWD|KEY|CREDENTIAL|DATABASE_URL|DSN/i;

/** Registers all secrets of this machine with the redactor, which masks the secrets in the report. */
export function keepLocalSecrets({ env, globals, platform, folder }: CommandContext): void {
  const values: string[] = globals.token ? [globals.token] : [];
  const variables = { ...env };
  try {
    const { config, env: loaded } = platform();
    Object.assign(variables, loaded);
    values.push(
      ...Object.keys(config.gateway.staticTokens),
      ...textsIn(config.pluginConfig),
      ...textsIn(config.adapters),
    );
    const { keys, credentials, tokenCache } = folder();
    for (const file of [keys, credentials, tokenCache]) values.push(...textsIn(readJson(file)));
  } catch {
    // An invalid config is not part of the report, so secrets in the config need no masking.
  }
  for (const [name, value] of Object.entries(variables))
    if (value && SECRET_VARIABLE.test(name)) values.push(value);
  keepSecret(values.filter((value) => !HARMLESS.has(value)));
}

/** Values in credentials.json that are not secret. Masking such common words would make the report unreadable. */
const HARMLESS = new Set(['operator', 'default']);

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

/** Returns all strings within a value, except URLs without credentials and query. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return /^https?:\/\/[^@?]*$/.test(value) ? [] : [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
