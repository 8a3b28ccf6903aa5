import { type ChildProcess, spawn } from 'node:child_process';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { minutes, seconds } from '../../../kit/time/duration.ts';
import { type Tool, toolLaunch } from './tool-launch.ts';

const TIMEOUT_MS = minutes(5);
/** Time between SIGTERM and SIGKILL. This time is shorter than the service's own shutdown limit. */
const GRACE_MS = seconds(3);
const OUTPUT_CHARS = 1024 * 1024;

export interface ToolPlace {
  cwd: string;
  /** Aborting this signal ends the tool and its child processes. The call then rejects with the signal's reason. */
  signal: AbortSignal;
  /** Time between SIGTERM and SIGKILL in ms. The default is 3 s. */
  graceMs?: number;
}

/**
 * Runs npm or git and resolves with the output. If the tool fails, throws UPSTREAM_UNAVAILABLE with the last lines of
 * the output.
 */
export async function runTool(tool: Tool, args: readonly string[], place: ToolPlace): Promise<string> {
  const { cwd, signal, graceMs = GRACE_MS } = place;
  signal.throwIfAborted();
  const { command, before, env } = toolLaunch(tool, process.env);
  return new Promise((resolve, reject) => {
    // The tool gets its own process group, so that git's child processes end together with the tool.
    const child = spawn(command, [...before, ...args], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const group = groupOf(child, graceMs);
    let late: string | undefined;
    const stopTimer = systemClock.after(TIMEOUT_MS, () => {
      late = `it was not done after ${TIMEOUT_MS / minutes(1)} minutes`;
      group.end();
    });
    signal.addEventListener('abort', group.end, { once: true });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < OUTPUT_CHARS) stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-8000);
    });
    child.on('error', (cause) => reject(failed(tool, `it cannot be started: ${cause.message}`, cause)));
    child.on('close', (code) => {
      stopTimer();
      signal.removeEventListener('abort', group.end);
      group.isOver();
      if (signal.aborted) reject(signal.reason);
      else if (code === 0) resolve(stdout);
      else reject(failed(tool, late ?? (lastWords(stderr) || `exit code ${code}`)));
    });
  });
}

/** A program and its child processes. */
interface ProgramGroup {
  /** Sends SIGTERM to all processes of the group, and SIGKILL after the grace period. */
  end(): void;
  /** Records that the program has exited. Kills remaining child processes if `end` was called before. */
  isOver(): void;
}

function groupOf(child: ChildProcess, graceMs: number): ProgramGroup {
  let stopTimer: (() => void) | undefined;

  function send(signal: NodeJS.Signals): void {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, signal);
    } catch {
      // The process group has already exited.
    }
  }
  return {
    end() {
      send('SIGTERM');
      stopTimer ??= systemClock.after(graceMs, () => {
        send('SIGKILL');
        // A child process outside the process group can keep the pipes open. The pipes are destroyed, so that open
        // pipes do not delay the result.
        child.stdout?.destroy();
        child.stderr?.destroy();
      });
    },
    isOver() {
      if (!stopTimer) return;
      stopTimer();
      send('SIGKILL');
    },
  };
}

/** Returns the last non-empty lines of the output. */
function lastWords(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.replace(/^npm (?:error|ERR!)\s*/, '').trim())
    .filter(
      (line) => line !== '' && !/^npm (?:warn|notice)|complete log of this run|^\S*_logs\//i.test(line),
    );
  return lines.slice(0, 6).join('; ').slice(0, 600);
}

function failed(tool: Tool, why: string, cause?: unknown): PlatformError {
  return new PlatformError('UPSTREAM_UNAVAILABLE', `${tool} failed: ${why}`, {
    details: { command: tool },
    ...(cause === undefined ? {} : { cause }),
  });
}
