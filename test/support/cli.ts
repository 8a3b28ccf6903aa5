import { spawn } from 'node:child_process';
import { findCommand, isNoun, nounOf } from '../../src/cli/command-table/command-table.ts';
import type { AnyCommand } from '../../src/cli/define-command.ts';
import { splitWords } from '../../src/cli/globals.ts';
import { runCommand } from '../../src/cli/run-command.ts';
import { entryFile } from '../../src/kit/files/paths.ts';
import type { AnyJson } from './any-json.ts';
import { userEnvironment } from './user-environment.ts';

export interface CliRun {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  /** Stdout as JSON; undefined if it is not one document. */
  json: AnyJson;
}

export interface CliOptions {
  cwd: string;
  /** Default: the user's. */
  env?: NodeJS.ProcessEnv;
  /** Default: empty. */
  stdin?: string;
}

/** Commands that start processes with this one's streams, read stdin or run until a signal. */
const OWN_PROCESS = new Set(['supervise', 'login', 'agent run', 'plugins test', 'plugins create', 'init']);

/**
 * Runs `svc`. Most commands run in this process, which takes a tenth of the processor time of a new one. Streams, commands
 * that read stdin and unknown ones run in a process of their own.
 */
export async function runCli(args: readonly string[], options: CliOptions): Promise<CliRun> {
  const { words, rest } = splitWords(args, (first) => (isNoun(nounOf(first)) ? 2 : 1));
  const entry = findCommand(words);
  if (!entry || OWN_PROCESS.has(entry.name)) return spawnCli(args, options);
  const { stdin, cwd, env = userEnvironment() } = options;
  const command = await entry.load();
  if (stdin !== undefined || isStreaming(command, rest) || configuresNode(env))
    return spawnCli(args, options);
  const [stdout, stderr] = [capture(), capture()];
  const code = await runCommand(command, rest, { cwd: () => cwd, env, stdout, stderr });
  return { code, signal: null, stdout: stdout.text(), stderr: stderr.text(), json: parse(stdout.text()) };
}

/** Runs `svc` in a process of its own, without a terminal. */
export async function spawnCli(args: readonly string[], { cwd, env, stdin }: CliOptions): Promise<CliRun> {
  const child = spawn(process.execPath, [entryFile('cli'), ...args], {
    cwd,
    env: env ?? userEnvironment(),
    stdio: 'pipe',
  });
  // A command that reads no stdin closes it before the text arrives.
  child.stdin.on('error', () => {}).end(stdin);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (text) => (stdout += text));
  child.stderr.on('data', (text) => (stderr += text));
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
    child.once('close', (...exit) => resolve(exit)),
  );
  return { code, signal, stdout, stderr, json: parse(stdout) };
}

function isStreaming({ name, streams }: AnyCommand, args: readonly string[]): boolean {
  if (name === 'logs') return args.includes('--follow') || args.includes('-f');
  if (!streams || streams === 'always') return streams === 'always';
  const [when, flag] = streams.split(' ') as ['with' | 'without', string];
  const isGiven = args.includes(flag) || args.includes(flag.slice(1, 3));
  return isGiven === (when === 'with');
}

/** Node reads its own variables at its start only. */
function configuresNode(env: NodeJS.ProcessEnv): boolean {
  return Object.entries(env).some(
    ([name, value]) => name.startsWith('NODE_') && value !== undefined && value !== process.env[name],
  );
}

/** A stream that is no terminal. */
function capture() {
  const chunks: string[] = [];
  return {
    write: (chunk: string | Uint8Array): boolean => {
      chunks.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString());
      return true;
    },
    text: () => chunks.join(''),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
