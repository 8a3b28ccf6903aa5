import { type ExecFileException, execFile } from 'node:child_process';
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import process from 'node:process';
import type { Permissions } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import type { Grants } from './grants.ts';
import { hasRawNetwork } from './node-flags.ts';
import { createSharedProbe } from './shared-probe.ts';

/** File descriptor on which bwrap reports the pid of its child process. */
export const STATUS_FD = 4;
const PROBE_MS = 10_000;
const TMP_BYTES = 64 * 1024 * 1024;
const SHARED_MEMORY_BYTES = 16 * 1024 * 1024;

/**
 * Writable in-memory folders in the sandbox of a plugin. Files in these folders count towards the memory limit of the
 * plugin's process.
 */
export const MEMORY_FOLDERS = ['/tmp', '/dev/shm'];

/** bwrap options that depend on whether this system allows user namespaces and a new mount of `/proc`. */
export interface Variant {
  user: string[];
  proc: string[];
}

export interface WorkingBwrap {
  works: true;
  variant: Variant;
}

/** Result of a probe. If `undecided` is true, the probe timed out or was killed. A later probe could then succeed. */
export type BwrapProbe = WorkingBwrap | { works: false; undecided: boolean; reason: string };

export interface BwrapProbeOptions {
  timeoutMs?: number;
  /** PATH used to find `bwrap`. The default is the PATH of this process. */
  path?: string | undefined;
}

const USERS: string[][] = [
  ['--unshare-user', '--uid', '65534', '--gid', '65534', '--disable-userns'],
  ['--unshare-user', '--uid', '65534', '--gid', '65534'],
  [],
];
const PROCS: string[][] = [
  ['--proc', '/proc'],
  ['--dir', '/proc'],
];

/**
 * Tests whether bubblewrap can start Node on this machine, and which options are needed. Undecided results, such as
 * timeouts, are not cached.
 */
export const probeBwrap = createBwrapProbe();

export function createBwrapProbe(options: BwrapProbeOptions = {}): () => Promise<BwrapProbe> {
  return createSharedProbe(
    () => probe(options),
    (found) => !isUndecided(found),
  );
}

const isUndecided = (found: BwrapProbe): boolean => !found.works && found.undecided;

async function probe(options: BwrapProbeOptions): Promise<BwrapProbe> {
  if (process.platform !== 'linux') return fails(`bubblewrap needs Linux, this is ${process.platform}`);
  let reason = '';
  for (const proc of PROCS) {
    for (const user of USERS) {
      const variant = { user, proc };
      const args = [...isolation(variant, {}), ...sealed(), '--', process.execPath, '-e', '0'];
      const failure = await tryStart(args, options);
      if (failure === undefined) return { works: true, variant };
      if (failure.kind === 'missing') return fails('bubblewrap (bwrap) is not installed');
      // A timeout ends the probe. Otherwise, a weaker variant could be used although a stronger variant works.
      if (failure.kind === 'undecided') return { works: false, undecided: true, reason: failure.message };
      reason ||= failure.message;
    }
  }
  return fails(`bubblewrap is installed but cannot make a sandbox here: ${reason}`);
}

const fails = (reason: string): BwrapProbe => ({ works: false, undecided: false, reason });

interface StartFailure {
  kind: 'missing' | 'refused' | 'undecided';
  message: string;
}

export function tryStart(args: string[], options: BwrapProbeOptions): Promise<StartFailure | undefined> {
  const { timeoutMs = PROBE_MS, path = process.env.PATH } = options;
  return new Promise((resolve) => {
    execFile(
      'bwrap',
      args,
      { timeout: timeoutMs, killSignal: 'SIGKILL', env: { PATH: path } },
      (error, _stdout, stderr) => {
        if (!error) return resolve(undefined);
        if (error.killed)
          return resolve({ kind: 'undecided', message: `bubblewrap did not start within ${timeoutMs} ms` });
        const message = (stderr.trim().split('\n')[0] || messageOf(error)).slice(0, 300);
        resolve({ kind: kindOf(error), message });
      },
    );
  });
}

/**
 * Returns the kind of a failure. `undecided` means that the process was killed or memory is short. Such a test does not
 * show whether bubblewrap works.
 */
function kindOf({ code, signal }: ExecFileException): StartFailure['kind'] {
  if (code === 'ENOENT') return 'missing';
  return signal || code === 'EAGAIN' || code === 'ENOMEM' ? 'undecided' : 'refused';
}

/**
 * Returns bwrap's arguments up to `--`. The arguments create separate namespaces and a file system that contains only
 * granted paths.
 */
export function bwrapArgs(
  probe: WorkingBwrap,
  grants: Grants,
  permissions: Permissions,
  root: string,
): string[] {
  const childProcesses = Boolean(permissions.platform?.childProcess);
  return [
    ...isolation(probe.variant, { network: hasRawNetwork(permissions) }),
    ...(hasRawNetwork(permissions) ? NETWORK_FILES.flatMap((path) => readOnly(path)) : []),
    ...(childProcesses ? PROGRAM_FOLDERS.flatMap(systemFolder) : []),
    ...grants.read.flatMap((path) => ['--ro-bind-try', path, path]),
    ...grants.links.flatMap(({ path, target }) => ['--symlink', target, path]),
    ...grants.write.flatMap((path) => ['--bind', path, path]),
    ...sealed(),
    '--chdir',
    root,
    '--json-status-fd',
    String(STATUS_FD),
    '--',
  ];
}

/** Folders from which a dynamically linked Node loads its libraries. */
const LIBRARY_FOLDERS = ['/usr/lib', '/usr/lib64', '/usr/lib32', '/lib', '/lib64', '/lib32', '/nix/store'];
export const PROGRAM_FOLDERS = ['/usr', '/bin', '/sbin'];
export const SYSTEM_FOLDERS = [...PROGRAM_FOLDERS, ...LIBRARY_FOLDERS];
export const NETWORK_FILES = [
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/nsswitch.conf',
  '/etc/gai.conf',
  '/etc/ssl',
  '/etc/pki',
];

export interface Isolation {
  /** Whether the program has the network of the machine. */
  network?: boolean;
  /** Whether the program is process 1 of its PID namespace. Otherwise, bwrap is. */
  asPid1?: boolean;
  /** Whether the program's user can be another one than bwrap's, and can use the folders that bwrap makes. */
  forAllUsers?: boolean;
}

export function isolation(
  variant: Variant,
  { network = false, asPid1 = true, forAllUsers = false }: Isolation,
): string[] {
  const node = realpathSync(process.execPath);
  return [
    ...variant.user,
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(network ? [] : ['--unshare-net']),
    // The kernel kills Node when the service ends. Node is process 1 of its PID namespace, so its child processes end
    // too.
    '--die-with-parent',
    ...(asPid1 ? ['--as-pid-1'] : []),
    '--new-session',
    '--cap-drop',
    'ALL',
    ...LIBRARY_FOLDERS.flatMap(systemFolder),
    ...['/etc/ld.so.cache', '/etc/localtime'].flatMap((path) => readOnly(path)),
    ...variant.proc,
    '--dev',
    '/dev',
    ...inMemory('/dev/shm', SHARED_MEMORY_BYTES, forAllUsers),
    ...inMemory('/tmp', TMP_BYTES, forAllUsers),
    // Node can be below /tmp, and the folder in memory there hides what was made before it.
    ...(forAllUsers ? usableFolders(parentsOf(node)) : []),
    '--ro-bind',
    node,
    node,
  ];
}

function inMemory(path: string, bytes: number, forAllUsers: boolean): string[] {
  return [...(forAllUsers ? ['--perms', '1777'] : []), '--size', String(bytes), '--tmpfs', path];
}

/** Makes folders that all users can enter. bwrap would make the parents of a mount for its own user alone. */
export function usableFolders(folders: readonly string[]): string[] {
  return folders.flatMap((folder) => ['--perms', '0755', '--dir', folder]);
}

/** Returns the folders above a path, the outermost first, without the root. */
function parentsOf(path: string): string[] {
  const folder = dirname(path);
  return folder === dirname(folder) ? [] : [...parentsOf(folder), folder];
}

/** Remounts `/` and `/dev` read-only after all other mounts. Both are in-memory file systems without a size limit. */
export function sealed(): string[] {
  return ['--remount-ro', '/dev', '--remount-ro', '/'];
}

/**
 * Mounts a system folder. Recreates symbolic links in the sandbox, such as the link from `/lib` to `/usr/lib` on many
 * systems.
 */
export function systemFolder(path: string): string[] {
  if (!existsSync(path)) return [];
  if (lstatSync(path).isSymbolicLink()) return ['--symlink', readlinkSync(path), path];
  return ['--ro-bind', path, path];
}

export function readOnly(path: string): string[] {
  return ['--ro-bind-try', path, path];
}
