import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { CONFIG_FILE } from '../../../kit/config/config.ts';
import type { Random } from '../../../kit/security/random.ts';
import { schemaPath } from '../../vendor/project-schemas.ts';

const SECRET_BYTES = 32;
const IGNORED_PATHS = ['.svc*/', '.env', 'node_modules/'];

/**
 * Secrets that a new `.env` contains. The master key is stored in `.svc/keys.json` instead, so that backups include the
 * key.
 */
const SECRETS = [
  ['GATEWAY_JWT_SECRET', 'signs access tokens; changing it invalidates all tokens'],
  ['GATEWAY_INTERNAL_SECRET', 'authenticates POST /internal/dispatch'],
] as const;

/** Returns a config file with the most common settings. The schema of the config documents all other settings. */
export function configText(folder: string): string {
  const config = {
    $schema: schemaPath(folder, 'svc.schema.json', join(folder, CONFIG_FILE)),
    gateway: { port: 4000 },
    plugins: ['./plugins/*'],
    workflows: ['./workflows/*.{yaml,yml}'],
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** Returns the text of `.env` with a generated value for each missing secret. */
export function extendedEnv(before: string, random: Random): string {
  const existing = parseEnv(before);
  const missing = SECRETS.filter(([name]) => !existing[name]);
  if (missing.length === 0) return before;
  const lines = missing.flatMap(([name, use]) => [
    `# ${name} ${use}.`,
    `${name}=${random.secret(SECRET_BYTES)}`,
  ]);
  const head = before === '' ? ['# Secrets of this project. Keep this file out of version control.'] : [];
  return appended(before, [...head, ...lines]);
}

export function extendedIgnore(before: string): string {
  const existing = new Set(
    before.split('\n').map((line) => line.trim().replace(/^\//, '').replace(/\/$/, '')),
  );
  const missing = IGNORED_PATHS.filter((name) => !existing.has(name.replace(/\/$/, '')));
  return missing.length === 0 ? before : appended(before, missing);
}

function appended(before: string, lines: string[]): string {
  const gap = before === '' || before.endsWith('\n') ? '' : '\n';
  return `${before}${gap}${lines.join('\n')}\n`;
}
