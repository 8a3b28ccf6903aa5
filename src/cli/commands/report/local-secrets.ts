import { readFileSync } from 'node:fs';
import { keepSecret } from '../../../kit/telemetry/redact.ts';
import type { CommandContext } from '../../context.ts';

/** Names of variables that may hold secrets. */
const SECRET_VARIABLE = /SECRET|TOKEN|PASSWORD|PASSWD|KEY|CREDENTIAL|DATABASE_URL|DSN/i;

/** Registers all local secrets with the redactor. */
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
    // An invalid config is reported elsewhere and not printed.
  }
  for (const [name, value] of Object.entries(variables))
    if (value && SECRET_VARIABLE.test(name)) values.push(value);
  keepSecret(values.filter((value) => !HARMLESS.has(value)));
}

/** Ids in the credentials that are not secret; masking them would make the report unreadable. */
const HARMLESS = new Set(['operator', 'default']);

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

/** All strings within a value, except plain URLs. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return /^https?:\/\/[^@?]*$/.test(value) ? [] : [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
