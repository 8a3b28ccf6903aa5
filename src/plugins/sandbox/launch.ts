import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import process from 'node:process';
import type { Permissions, PlatformConfig } from '../../contracts/index.ts';
import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import { entryFile } from '../../kit/files/paths.ts';
import { locate } from '../../kit/process/locate-program.ts';
import { type BwrapProbe, bwrapArgs, probeBwrap, type WorkingBwrap } from './bwrap.ts';
import { scrubEnvironment } from './environment.ts';
import { resolveGrants } from './grants.ts';
import { nodeFlags, nodeGuardsNetwork } from './node-flags.ts';

export type SandboxPreference = PlatformConfig['execution']['worker']['sandbox'];
export type SandboxMode = 'bwrap' | 'permission';

export interface SandboxInForce {
  mode: SandboxMode;
  /** Whether the sandbox blocks direct connections of plugins that lack the permission `network: ["*"]`. */
  networkGuarded: boolean;
  /** Reason why the sandbox is not `bwrap`. Absent if the sandbox is `bwrap`. */
  reason?: string;
}

/**
 * The sandbox in use, or the reason why the configured sandbox does not work. If no sandbox works, no plugin starts.
 */
export type SandboxStatus =
  | SandboxInForce
  | { mode: 'unavailable'; networkGuarded: boolean; reason?: string };

/** A command that starts the sandboxed runner. */
export interface Launch {
  mode: SandboxMode;
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
}

export interface LaunchInput {
  /** Real path of the plugin's folder. */
  root: string;
  permissions: Permissions;
  memoryMb: number;
  preference: SandboxPreference;
  dataDir: string;
  secrets?: readonly string[];
  environment: NodeJS.ProcessEnv;
  /** Callback that is called with the sandbox chosen for this launch, or with the reason why no sandbox works. */
  onSandbox?: ((sandbox: SandboxStatus) => void) | undefined;
}

/**
 * Returns the sandbox in use. Throws SANDBOX_ERROR if bwrap is required but does not work. A timeout also throws,
 * because a slow machine must not use the weaker sandbox. @spec docs/security.md
 */
export async function sandboxInForce(preference: SandboxPreference = 'auto'): Promise<SandboxInForce> {
  return inForce(await chooseSandbox(preference));
}

/** Returns the sandbox in use, or the mode `unavailable` if `sandboxInForce` throws. */
export async function sandboxStatus(preference: SandboxPreference): Promise<SandboxStatus> {
  try {
    return await sandboxInForce(preference);
  } catch (error) {
    return unavailable(error);
  }
}

type ChosenSandbox = { mode: 'bwrap'; bwrap: WorkingBwrap } | { mode: 'permission'; reason: string };

export async function chooseSandbox(
  preference: SandboxPreference,
  probe: () => Promise<BwrapProbe> = probeBwrap,
): Promise<ChosenSandbox> {
  if (preference === 'permission')
    return { mode: 'permission', reason: 'execution.worker.sandbox is "permission"' };
  const bwrap = await probe();
  if (bwrap.works) return { mode: 'bwrap', bwrap };
  const { reason, undecided } = bwrap;
  if (undecided)
    throw new PlatformError(
      'SANDBOX_ERROR',
      `Plugins cannot be started now: ${reason}. The next call retries. If this persists, set execution.worker.sandbox to "permission", which is weaker.`,
      { details: { reason } },
    );
  if (preference === 'auto') return { mode: 'permission', reason };
  throw new PlatformError(
    'SANDBOX_ERROR',
    `Plugins cannot be started: execution.worker.sandbox is "bwrap", but ${reason}. Install bubblewrap (and allow user namespaces), or set execution.worker.sandbox to "auto".`,
    { details: { reason } },
  );
}

function inForce(chosen: ChosenSandbox): SandboxInForce {
  if (chosen.mode === 'bwrap') return { mode: 'bwrap', networkGuarded: true };
  return { mode: 'permission', networkGuarded: nodeGuardsNetwork, reason: chosen.reason };
}

const unavailable = (error: unknown): SandboxStatus => ({
  mode: 'unavailable',
  networkGuarded: false,
  reason: messageOf(error),
});

/**
 * Returns the command that starts a plugin's sandboxed runner. Throws SANDBOX_ERROR if the sandbox cannot be prepared.
 */
export async function prepareLaunch(input: LaunchInput): Promise<Launch> {
  const { root, permissions, memoryMb } = input;
  const chosen = await chosenFor(input);
  requireKernelSandbox(chosen, permissions);
  const grants = await resolveGrants(input);
  requireWritable(grants.write);
  const node = [...nodeFlags(grants, permissions, memoryMb), realpathSync(entryFile('runner'))];
  const env = scrubEnvironment(permissions, input.environment);
  if (chosen.mode === 'bwrap') {
    const own = bwrapArgs(chosen.bwrap, grants, permissions, root);
    const args = [...own, realpathSync(process.execPath), ...node];
    return { mode: 'bwrap', command: await findBwrap(input.environment), args, env, cwd: '/' };
  }
  const [command, ...args] = [...(await parentDeathSignal()), process.execPath, ...node];
  return { mode: 'permission', command: command!, args, env, cwd: root };
}

async function chosenFor({ preference, onSandbox }: LaunchInput): Promise<ChosenSandbox> {
  try {
    const chosen = await chooseSandbox(preference);
    onSandbox?.(inForce(chosen));
    return chosen;
  } catch (error) {
    onSandbox?.(unavailable(error));
    throw error;
  }
}

/** Rejects plugins that may start programs only in a sandbox of the kernel, if there is none. */
function requireKernelSandbox(chosen: ChosenSandbox, permissions: Permissions): void {
  if (chosen.mode === 'bwrap' || permissions.platform?.childProcess !== 'sandboxed') return;
  throw new PlatformError('SANDBOX_ERROR', needsKernelSandbox(chosen.reason), {
    details: { reason: chosen.reason },
  });
}

/** Message for a plugin whose programs may only run in a sandbox of the kernel. */
export function needsKernelSandbox(reason: string): string {
  return `The permission platform.childProcess is "sandboxed", so the plugin runs only inside bubblewrap or a container, and bubblewrap is not in use: ${reason}. Install bubblewrap, or set execution.plugins.<id>.backend to "container".`;
}

/**
 * Rejects writable paths that do not exist. bwrap cannot mount a missing path, and without bwrap the plugin could
 * create the path.
 */
function requireWritable(paths: readonly string[]): void {
  const missing = paths.find((path) => !existsSync(path));
  if (missing === undefined) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `permissions.fs.write names ${missing}, which does not exist. Create it, then call the plugin again.`,
    { details: { path: missing } },
  );
}

/** Finds the path of `bwrap` in the PATH of the service, because the child process has no PATH. */
async function findBwrap(environment: NodeJS.ProcessEnv): Promise<string> {
  return locate('bwrap', environment.PATH) ?? 'bwrap';
}

let setpriv: Promise<string[]> | undefined;

/**
 * Returns a command prefix that makes Linux kill the runner when the service dies. Otherwise, plugin code in an endless
 * loop would keep running. The prefix is empty on systems without `setpriv`.
 */
function parentDeathSignal(): Promise<string[]> {
  const program = locate('setpriv', process.env.PATH);
  if (!program || process.platform !== 'linux') return Promise.resolve([]);
  const prefix = [program, '--pdeathsig', 'KILL', '--no-new-privs', '--'];
  setpriv ??= new Promise((resolve) => {
    execFile(program, [...prefix.slice(1), process.execPath, '--version'], (error) =>
      resolve(error ? [] : prefix),
    );
  });
  return setpriv;
}
