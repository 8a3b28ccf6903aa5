import { spawn } from 'node:child_process';
import { entryFile } from '../../src/kit/files/paths.ts';
import type { AnyJson } from '../support/any-json.ts';
import { userEnvironment } from '../support/user-environment.ts';

export interface SvcRun {
  code: number | null;
  stdout: string;
  stderr: string;
  json: AnyJson;
}

/** Runs `svc` from the sources in `cwd`, without a terminal; `json` is its stdout where that is one document. */
export async function runSvc(
  cwd: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<SvcRun> {
  const child = spawn(process.execPath, [entryFile('cli'), ...args], {
    cwd,
    env: { ...userEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (text) => (stdout += text));
  child.stderr.on('data', (text) => (stderr += text));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, stdout, stderr, json: parse(stdout) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
