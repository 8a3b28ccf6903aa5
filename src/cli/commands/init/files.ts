import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { CONFIG_FILE } from '../../../kit/config.ts';
import type { Random } from '../../../kit/random.ts';
import { schemaPath } from '../../vendor/project-schemas.ts';

const SECRET_BYTES = 32;
const IGNORED = ['.svc*/', '.env', 'node_modules/'];

/** The master key is not among them: it lies in `.svc/keys.json`, so that a backup opens what it holds. */
const SECRETS = [
  ['GATEWAY_JWT_SECRET', 'signs the access tokens; a new one makes every token invalid at once'],
  ['GATEWAY_INTERNAL_SECRET', 'is what POST /internal/dispatch asks for'],
] as const;

/** What differs from one project to the next, and what one looks for first; the schema knows the rest. */
export function configText(folder: string): string {
  const config = {
    $schema: schemaPath(folder, 'svc.schema.json', join(folder, CONFIG_FILE)),
    gateway: { port: 4000 },
    plugins: ['./plugins/*'],
    workflows: ['./workflows/*.{yaml,yml}'],
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** The text with a fresh secret for each that it lacks. */
export function extendedEnv(before: string, random: Random): string {
  const there = parseEnv(before);
  const missing = SECRETS.filter(([name]) => !there[name]);
  if (missing.length === 0) return before;
  const lines = missing.flatMap(([name, use]) => [
    `# ${name} ${use}.`,
    `${name}=${random.secret(SECRET_BYTES)}`,
  ]);
  const head = before === '' ? ['# Secrets of this project. Keep this file out of version control.'] : [];
  return appended(before, [...head, ...lines]);
}

export function extendedIgnore(before: string): string {
  const there = new Set(before.split('\n').map((line) => line.trim().replace(/^\//, '').replace(/\/$/, '')));
  const missing = IGNORED.filter((name) => !there.has(name.replace(/\/$/, '')));
  return missing.length === 0 ? before : appended(before, missing);
}

function appended(before: string, lines: string[]): string {
  const gap = before === '' || before.endsWith('\n') ? '' : '\n';
  return `${before}${gap}${lines.join('\n')}\n`;
}
