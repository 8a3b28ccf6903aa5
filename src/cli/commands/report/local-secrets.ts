import { readFileSync } from 'node:fs';
import { keepSecret } from '../../../kit/redact.ts';
import type { CommandContext } from '../../context.ts';

/** Names of variables that hold secrets of ours or of anybody's. */
const SECRET_VARIABLE = /SECRET|TOKEN|PASSWORD|PASSWD|KEY|CREDENTIAL|DATABASE_URL|DSN/i;

/** Every secret this machine has of the platform is masked from now on wherever it stands, in whatever text. */
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
    // A faulty config is part of the report; what it may hold is not printed then.
  }
  for (const [name, value] of Object.entries(variables))
    if (value && SECRET_VARIABLE.test(name)) values.push(value);
  keepSecret(values.filter((value) => !HARMLESS.has(value)));
}

/** Of the credentials: who it is for is no secret, and masking it would mask the report. */
const HARMLESS = new Set(['operator', 'default']);

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

/** Every text of a value that is long enough to be one. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return /^https?:\/\/[^@?]*$/.test(value) ? [] : [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
