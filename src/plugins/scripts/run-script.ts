import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { type FileHandle, lchown, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { PlatformError } from '../../kit/errors/errors.ts';
import { locate } from '../../kit/process/locate-program.ts';
import { every, systemClock } from '../../kit/time/clock.ts';
import { createMemoryWatch } from '../backends/worker/memory.ts';
import { type SpawnEvents, type SpawnedRunner, spawnRunner } from '../backends/worker/spawn-runner.ts';
import { asUser, SCRIPT_PATHS, type ScriptMounts, scriptArgs, userOf } from '../sandbox/script-args.ts';
import type { HiddenPlaces } from '../sandbox/script-covers.ts';
import { launchText, sandboxVariables } from './launch-text.ts';
import { createScriptLog, type ScriptLog } from './script-log.ts';
import { MAX_OUTPUT_FILE_BYTES, parseOutputs } from './script-outputs.ts';
import { requireScriptSandbox, type ScriptSandbox } from './script-sandbox.ts';
import type { WorkspaceLease } from './workspace.ts';
import type { Workspaces } from './workspaces.ts';

export const SHELLS = {
  bash: ['bash', '--noprofile', '--norc', '-eo', 'pipefail'],
  sh: ['sh', '-e'],
  python: ['python3', '-u'],
  node: [realpathSync(process.execPath)],
} as const;
export type Shell = keyof typeof SHELLS;

export interface Script {
  runId: string;
  tenantId: string;
  shell: Shell;
  text: string;
  /** Values without NUL characters, which would end bwrap's options. */
  env: Record<string, string>;
  network: boolean;
  memoryMb: number;
  /** Kills all processes of the script. `runScript` then throws the reason. */
  signal: AbortSignal;
  log(level: 'info' | 'warn', line: string): void;
}

const OUTPUT_WATCH_MS = 250;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Runs a script of a workflow step in a sandbox of its own, and returns its outputs. Throws STEP_FAILED if the script
 * fails or exceeds a limit, PAYLOAD_TOO_LARGE for too many outputs, and SANDBOX_ERROR without bubblewrap.
 */
export async function runScript(
  script: Script,
  { workspaces, places }: { workspaces: Workspaces; places: HiddenPlaces },
): Promise<Record<string, string>> {
  const sandbox = await requireScriptSandbox(places);
  script.signal.throwIfAborted();
  const workspace = await workspaces.open(script.runId);
  try {
    return await runInFolder(sandbox, workspace, script);
  } finally {
    await workspace.release();
  }
}

async function runInFolder(
  sandbox: ScriptSandbox,
  workspace: WorkspaceLease,
  script: Script,
): Promise<Record<string, string>> {
  const { folder, files, home } = workspace;
  const own = join(folder, randomUUID());
  const paths = { folder: files, home, script: `${own}.script`, output: `${own}.output` };
  await writeFile(paths.script, script.text, { mode: 0o600, flag: 'wx' });
  // The outputs are read from this handle, so the script cannot replace the file by a link.
  const output = await open(paths.output, 'wx+', 0o600);
  try {
    if (sandbox.switchesUser) await giveTo(userOf(script.runId), paths);
    script.signal.throwIfAborted();
    await runIn({ sandbox, workspace, paths, output }, script);
    return await outputsOf(output);
  } finally {
    await output.close();
    await Promise.all([paths.script, paths.output].map((path) => rm(path, { force: true })));
  }
}

type Paths = ScriptMounts['paths'];

async function giveTo(user: number, paths: Paths): Promise<void> {
  await Promise.all(Object.values(paths).map((path) => lchown(path, user, user)));
}

interface Surroundings {
  sandbox: ScriptSandbox;
  workspace: WorkspaceLease;
  paths: Paths;
  output: FileHandle;
}

function runIn({ sandbox, workspace, paths, output }: Surroundings, script: Script): Promise<void> {
  const { signal, network, memoryMb } = script;
  const { bwrap, switchesUser, covers } = sandbox;
  const env = environmentOf(script);
  const log = createScriptLog(script, () => end(`wrote more than ${log.maxMb} MB of output`));
  const done = Promise.withResolvers<void>();
  let limit: string | undefined;
  const events: SpawnEvents = {
    onLine: log.take,
    onBytes: log.count,
    onExit(code, killedBy, error) {
      for (const stop of stops) stop();
      const exit = { code, killedBy, limit, wasStarted: runner.pid !== undefined, error };
      if (signal.aborted) done.reject(signal.reason);
      else if (code === 0 && limit === undefined) done.resolve();
      else done.reject(failureOf(exit, log));
    },
  };
  const runner = spawnRunner(launchOf(script, env, sandbox), events, { isGated: true });
  function end(what: string): void {
    limit ??= what;
    runner.kill();
  }
  const mounts = { paths, network, covers, switchesUser, env: sandboxVariables(env, sandbox) };
  sendOptions(runner, scriptArgs(bwrap, mounts));
  const memory = createMemoryWatch({
    limitMb: memoryMb,
    folders: runner.memoryFolders,
    pid: () => runner.pid,
    isBusy: () => true,
    hasChildren: true,
    onFull() {},
    onOver: () => end(`used more than ${memoryMb} MB of memory`),
    onManyChildren: (max) => end(`started too many processes, more than ${max}`),
  });
  memory.start();
  const kill = (): void => runner.kill();
  signal.addEventListener('abort', kill, { once: true });
  const stops = [
    memory.stop,
    () => signal.removeEventListener('abort', kill),
    workspace.watch(end),
    watchOutput(output, end),
  ];
  return done.promise;
}

function launchOf(
  { runId, shell }: Script,
  env: Record<string, string>,
  sandbox: ScriptSandbox,
): Parameters<typeof spawnRunner>[0] {
  const start = ['/bin/sh', '-c', launchText(env, sandbox), 'sh', ...SHELLS[shell], SCRIPT_PATHS.script];
  return {
    mode: 'bwrap',
    command: locate('bwrap', process.env.PATH) ?? 'bwrap',
    args: ['--args', '3', '--', ...(sandbox.switchesUser ? asUser(userOf(runId)) : []), ...start],
    // bwrap itself runs outside of the sandbox, so it gets no variable of the script.
    env: {},
    cwd: '/',
  };
}

/** Sends bwrap's options, which it reads up to the end of the stream. */
function sendOptions({ channel }: SpawnedRunner, options: readonly string[]): void {
  channel.on('error', () => {});
  channel.resume();
  channel.end(options.map((option) => `${option}\0`).join(''));
}

function environmentOf({ env }: Script): Record<string, string> {
  return {
    LANG: 'C.UTF-8',
    HOME: SCRIPT_PATHS.home,
    TMPDIR: '/tmp',
    PATH: `${PATH}:${dirname(SHELLS.node[0])}`,
    ...env,
    SVC_OUTPUT: SCRIPT_PATHS.output,
    SVC_WORKSPACE: SCRIPT_PATHS.folder,
  };
}

interface Exit {
  code: number | null;
  killedBy: string | null;
  limit: string | undefined;
  wasStarted: boolean;
  error: Error | undefined;
}

function failureOf({ code, killedBy, limit, wasStarted, error }: Exit, log: ScriptLog): PlatformError {
  const stderr = log.lastErrors();
  const said = stderr.length === 0 ? '' : ` Its last lines of stderr: ${stderr.join('\n')}`;
  if (limit !== undefined)
    return new PlatformError('STEP_FAILED', `The script ${limit}, so it was ended.${said}`, {
      details: { reason: 'limit', stderr },
    });
  if (!wasStarted)
    return new PlatformError('SANDBOX_ERROR', `The sandbox of the script did not start.${said}`, {
      details: { stderr },
      cause: error,
    });
  const how = killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}`;
  return new PlatformError('STEP_FAILED', `The script ${how}.${said}`, {
    details: { exitCode: code, signal: killedBy, stderr },
  });
}

/** Polls the size of the output file. Returns the function that stops it. */
function watchOutput(output: FileHandle, onOver: (what: string) => void): () => void {
  return every(systemClock, OUTPUT_WATCH_MS, async () => {
    const { size } = await output.stat().catch(() => ({ size: 0 }));
    if (size > MAX_OUTPUT_FILE_BYTES) onOver('wrote more than 1 MiB to $SVC_OUTPUT');
  });
}

async function outputsOf(output: FileHandle): Promise<Record<string, string>> {
  const { size } = await output.stat();
  if (size > MAX_OUTPUT_FILE_BYTES)
    throw new PlatformError(
      'PAYLOAD_TOO_LARGE',
      `$SVC_OUTPUT has ${size} bytes; the limit is ${MAX_OUTPUT_FILE_BYTES}. Keep large results in files, or store them elsewhere.`,
    );
  const { buffer, bytesRead } = await output.read(Buffer.alloc(size), 0, size, 0);
  return parseOutputs(buffer.toString('utf8', 0, bytesRead));
}
