import { type ChildProcess, spawn } from 'node:child_process';
import { systemClock } from '../../../kit/clock.ts';
import { minutes } from '../../../kit/duration.ts';
import { PlatformError } from '../../../kit/errors.ts';

const TIMEOUT_MS = minutes(5);
const OUTPUT_CHARS = 1024 * 1024;

/**
 * Nobody is asked anything, and no program runs that a package names: settings of the environment go before those that
 * lie in a package's folder, also for the npm that npm calls.
 */
const SETTINGS = {
  GIT_TERMINAL_PROMPT: '0',
  npm_config_yes: 'true',
  npm_config_git: 'git',
  npm_config_ignore_scripts: 'true',
};
/** The platform's own secrets stay here: what npm and git call is not ours. */
const WITHHELD = /^(?:SVC_|GATEWAY_|NODE_OPTIONS$)/;

export interface ToolPlace {
  cwd: string;
  /** Ends it and whatever it started; it fails with the signal's reason then. */
  signal: AbortSignal;
}

/** Runs npm or git and resolves with its stdout. Throws UPSTREAM_UNAVAILABLE with the last of what it said. */
export async function runTool(
  command: 'npm' | 'git',
  args: readonly string[],
  { cwd, signal }: ToolPlace,
): Promise<string> {
  signal.throwIfAborted();
  const inherited = Object.entries(process.env).filter(([name]) => !WITHHELD.test(name));
  const env = { ...Object.fromEntries(inherited), ...SETTINGS };
  return new Promise((resolve, reject) => {
    // A group of its own, so that what npm calls ends with it.
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const end = (): void => endGroup(child);
    let late: string | undefined;
    const stopTimer = systemClock.after(TIMEOUT_MS, () => {
      late = `it was not done after ${TIMEOUT_MS / minutes(1)} minutes`;
      end();
    });
    signal.addEventListener('abort', end, { once: true });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < OUTPUT_CHARS) stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-8000);
    });
    child.on('error', (cause) => reject(failed(command, `it cannot be started: ${cause.message}`, cause)));
    child.on('close', (code) => {
      stopTimer();
      signal.removeEventListener('abort', end);
      if (signal.aborted) reject(signal.reason);
      else if (code === 0) resolve(stdout);
      else reject(failed(command, late ?? (lastWords(stderr) || `exit code ${code}`)));
    });
  });
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // Gone already.
  }
}

/** What a tool said last that tells anything. */
function lastWords(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.replace(/^npm (?:error|ERR!)\s*/, '').trim())
    .filter(
      (line) => line !== '' && !/^npm (?:warn|notice)|complete log of this run|^\S*_logs\//i.test(line),
    );
  return lines.slice(0, 6).join('; ').slice(0, 600);
}

function failed(command: string, why: string, cause?: unknown): PlatformError {
  return new PlatformError('UPSTREAM_UNAVAILABLE', `${command} failed: ${why}`, {
    details: { command },
    ...(cause === undefined ? {} : { cause }),
  });
}
