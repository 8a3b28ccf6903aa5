import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Environment } from '../../kit/config/secret-ref.ts';
import { codeOf, PlatformError } from '../../kit/errors/errors.ts';
import { shellWord } from '../shell-word.ts';

const run = promisify(execFile);
/** Options of a dump. The tables have one schema, and unlogged tables hold only rate counters. */
const DUMP_OPTIONS = [
  '--format=custom',
  '--schema=svc',
  '--no-owner',
  '--no-acl',
  '--no-unlogged-table-data',
];
const RESTORE_OPTIONS = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-acl'];
/** Partitions of log records and events, without their counts. */
const TELEMETRY_PARTITIONS = ['svc.log_[0-9]*', 'svc.event_[0-9]*'];

/** Dumps the platform's schema to a file. The dump contains all transactions that were committed before its start. */
export async function dumpDatabase(
  url: string,
  file: string,
  { withTelemetry, env }: { withTelemetry: boolean; env: Environment },
): Promise<void> {
  const excluded = withTelemetry ? [] : TELEMETRY_PARTITIONS.map((table) => `--exclude-table-data=${table}`);
  await runProgram('pg_dump', [...DUMP_OPTIONS, ...excluded, `--file=${file}`], { url, env });
}

/** Restores a dump in one transaction, so that a failure leaves the database unchanged. */
export async function restoreDatabase(url: string, file: string, env: Environment): Promise<void> {
  await runProgram('pg_restore', [...RESTORE_OPTIONS, file], { url, env });
}

/** Returns the shell commands that dump and restore the database. They contain no password. */
export function databaseCommands(url: string): { dump: string; restore: string } {
  const target = shellWord(`--dbname=${withoutPassword(url)}`);
  return {
    dump: `pg_dump ${DUMP_OPTIONS.join(' ')} --file=svc.dump ${target}`,
    restore: `pg_restore ${RESTORE_OPTIONS.join(' ')} ${target} svc.dump`,
  };
}

/** Runs a client program of PostgreSQL. The password is passed in the environment, because arguments are public. */
async function runProgram(
  name: string,
  args: readonly string[],
  { url, env }: { url: string; env: Environment },
): Promise<void> {
  const { password } = new URL(url);
  const secret = password ? { PGPASSWORD: decodeURIComponent(password) } : {};
  try {
    await run(name, ['--no-password', `--dbname=${withoutPassword(url)}`, ...args], {
      env: { ...env, ...secret },
    });
  } catch (error) {
    throw programError(name, error);
  }
}

function programError(name: string, cause: unknown): PlatformError {
  if (codeOf(cause) === 'ENOENT')
    return new PlatformError('STORE_ERROR', `${name} is not installed.`, {
      details: { program: name, hint: 'Install the client programs of PostgreSQL (postgresql-client).' },
      cause,
    });
  const said = String((cause as { stderr?: string }).stderr ?? '').trim();
  const [line = 'unknown error'] = said.split('\n');
  return new PlatformError('STORE_ERROR', `${name} failed: ${line.replace(/^pg_\w+: (?:error: )?/, '')}`, {
    details: {
      program: name,
      output: said.slice(0, 2000),
      ...(said.includes('server version') ? { hint: `Install a ${name} that is as new as the server.` } : {}),
    },
    cause,
  });
}

function withoutPassword(url: string): string {
  const shown = new URL(url);
  shown.password = '';
  return shown.href;
}
