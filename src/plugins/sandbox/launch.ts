import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import process from 'node:process';
import type { Permissions, PlatformConfig } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors.ts';
import { locate } from '../../kit/locate.ts';
import { entryFile } from '../../kit/paths.ts';
import { bwrapArgs, probeBwrap } from './bwrap.ts';
import { scrubEnvironment } from './environment.ts';
import { resolveGrants } from './grants.ts';
import { nodeFlags, nodeGuardsNetwork } from './node-flags.ts';

export type SandboxPreference = PlatformConfig['execution']['worker']['sandbox'];
export type SandboxMode = 'bwrap' | 'permission';

/** What confines plugin code on this machine. */
export interface SandboxInForce {
  mode: SandboxMode;
  /** Whether a plugin without `network: ["*"]` is kept from opening connections. */
  networkGuarded: boolean;
  /** Why it is not `bwrap`. */
  reason?: string;
}

/** A command that starts the runner confined. */
export interface Launch {
  mode: SandboxMode;
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
}

export interface LaunchInput {
  /** The plugin's folder as a real path. */
  root: string;
  permissions: Permissions;
  memoryMb: number;
  preference: SandboxPreference;
  dataDir: string;
  secrets?: readonly string[];
  environment: NodeJS.ProcessEnv;
}

/**
 * Tells which sandbox plugins get. Throws SANDBOX_ERROR when `bwrap` is demanded and does not work.
 * @spec docs/security.md
 */
export async function sandboxInForce(preference: SandboxPreference = 'auto'): Promise<SandboxInForce> {
  const { mode, reason } = await chooseMode(preference);
  return { mode, networkGuarded: mode === 'bwrap' || nodeGuardsNetwork, ...(reason ? { reason } : {}) };
}

async function chooseMode(preference: SandboxPreference): Promise<{ mode: SandboxMode; reason?: string }> {
  if (preference === 'permission')
    return { mode: 'permission', reason: 'execution.worker.sandbox is "permission"' };
  const probe = await probeBwrap();
  if (probe.works) return { mode: 'bwrap' };
  if (preference === 'auto') return { mode: 'permission', reason: probe.reason };
  throw new PlatformError(
    'SANDBOX_ERROR',
    `Plugins cannot be started: execution.worker.sandbox is "bwrap", but ${probe.reason}. Install bubblewrap (and allow user namespaces), or set execution.worker.sandbox to "auto".`,
    { details: { reason: probe.reason } },
  );
}

/** Works out how to start the runner for a plugin. Throws SANDBOX_ERROR. */
export async function prepareLaunch(input: LaunchInput): Promise<Launch> {
  const { root, permissions, memoryMb } = input;
  const { mode } = await chooseMode(input.preference);
  const grants = await resolveGrants(input);
  requireWritable(grants.write);
  const node = [...nodeFlags(grants, permissions, memoryMb), realpathSync(entryFile('runner'))];
  const env = scrubEnvironment(permissions, input.environment);
  const probe = mode === 'bwrap' ? await probeBwrap() : undefined;
  if (probe?.works) {
    const args = [...bwrapArgs(probe, grants, permissions, root), realpathSync(process.execPath), ...node];
    return { mode, command: await findBwrap(input.environment), args, env, cwd: '/' };
  }
  const [command, ...args] = [...(await parentDeathSignal()), process.execPath, ...node];
  return { mode, command: command!, args, env, cwd: root };
}

/** Under bubblewrap there is nothing to write to; the permission model alone would let the plugin create it. */
function requireWritable(paths: readonly string[]): void {
  const missing = paths.find((path) => !existsSync(path));
  if (missing === undefined) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `permissions.fs.write names ${missing}, which does not exist. Create it, then call the plugin again.`,
    { details: { path: missing } },
  );
}

/** The child's PATH is scrubbed, so the program is looked up in ours. */
async function findBwrap(environment: NodeJS.ProcessEnv): Promise<string> {
  return locate('bwrap', environment.PATH) ?? 'bwrap';
}

let setpriv: Promise<string[]> | undefined;

/**
 * The runner ends when its channel closes, but plugin code that blocks its loop would never see that:
 * on Linux the kernel ends it when the daemon dies. Empty where `setpriv` is missing.
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
