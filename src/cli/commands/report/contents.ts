import { arch, cpus, release, totalmem, uptime } from 'node:os';
import { join } from 'node:path';
import { SERVICE_NAMES } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import { version } from '../../../kit/files/paths.ts';
import { redact, redactText } from '../../../kit/telemetry/redact.ts';
import { findSupervisor } from '../../../supervisor/control-client.ts';
import type { CommandContext } from '../../context.ts';
import { lastRecords } from '../../log-reader.ts';
import { maskConfig } from '../config/mask-config.ts';
import { diagnose } from '../doctor/doctor.ts';
import { keepLocalSecrets } from './local-secrets.ts';

/** Environment variables whose values the report includes. For all other variables, the report lists only the names. */
const SAFE_VARIABLES =
  /^(?:SVC_(?:HOME|CONFIG|PROFILE|GATEWAY_URL|[A-Z]+_(?:PORT|HOST))|GATEWAY_PUBLIC_URL|NODE_ENV|NODE_OPTIONS|TZ|LANG)$/;
const PLATFORM_VARIABLES = /^(?:SVC_|GATEWAY_|NODE_|OTEL_|TZ$|LANG$)/;

/** Returns the files of a report by name. If a file cannot be produced, its content is the error message. */
export async function contentsOf(context: CommandContext, lines: number): Promise<Record<string, string>> {
  keepLocalSecrets(context);
  const parts: Array<[name: string, make: () => unknown | Promise<unknown>]> = [
    ['versions.json', () => versions()],
    ['environment.json', () => environment(context)],
    ['config.json', () => configuration(context)],
    ['status.json', () => findSupervisor(context.folder())?.status() ?? { running: false }],
    ['doctor.json', () => diagnose(context, false)],
  ];
  const texts: Record<string, string> = {};
  for (const [name, make] of parts) texts[name] = await asText(make);
  for (const source of [...SERVICE_NAMES, 'supervisor'])
    texts[`logs/${source}.log`] = await logOf(context, source, lines);
  return texts;
}

async function asText(make: () => unknown): Promise<string> {
  const made = await Promise.resolve()
    .then(make)
    .catch((error: unknown) => ({ error: messageOf(error) }));
  return redactText(`${JSON.stringify(made, null, 2)}\n`);
}

function versions() {
  return {
    svc: version,
    node: process.versions,
    platform: `${process.platform}-${arch()}`,
    kernel: release(),
    cpus: cpus().length,
    memoryBytes: totalmem(),
    upSeconds: Math.round(uptime()),
  };
}

/** Returns the values of safe variables, and `(set)` for other platform variables. */
function environment({ env, platform }: CommandContext): Record<string, string> {
  const all = { ...env, ...platform().env };
  const platformVariables = Object.entries(all).filter(
    ([name, value]) => value !== undefined && PLATFORM_VARIABLES.test(name),
  );
  return Object.fromEntries(
    platformVariables.map(([name, value]) => [name, SAFE_VARIABLES.test(name) ? value! : '(set)']),
  );
}

function configuration({ platform }: CommandContext) {
  const { config, profile, configFile, projectDir, dataDir } = platform();
  return { profile, configFile, projectDir, dataDir, config: maskConfig(config) };
}

/**
 * Returns the last lines of a log. Redacts the records again as a precaution, although the logger has already redacted
 * each record.
 */
async function logOf({ folder }: CommandContext, source: string, lines: number): Promise<string> {
  try {
    const { records } = lastRecords([join(folder().logs, `${source}.log`)], lines);
    return records.map((record) => `${redactRecord(record)}\n`).join('');
  } catch (error) {
    return `${messageOf(error)}\n`;
  }
}

function redactRecord(record: string): string {
  try {
    return redactText(JSON.stringify(redact(JSON.parse(record))));
  } catch {
    return redactText(record);
  }
}
