import { execFile } from 'node:child_process';
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import process from 'node:process';
import type { Permissions } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors.ts';
import type { Grants } from './grants.ts';
import { hasRawNetwork } from './node-flags.ts';

/** The descriptor on which bwrap tells the pid of what it started. */
const STATUS_FD = 4;
const PROBE_MS = 10_000;
const TMP_BYTES = 64 * 1024 * 1024;
const SHARED_MEMORY_BYTES = 16 * 1024 * 1024;

/** Where a plugin may write in memory; the memory watch counts these as used. */
export const MEMORY_FOLDERS = ['/tmp', '/dev/shm'];

/** What differs between machines: whether users may make user namespaces, and mount a fresh `/proc`. */
interface Variant {
  user: string[];
  proc: string[];
}

export type BwrapProbe = { works: true; variant: Variant } | { works: false; reason: string };

const USERS: string[][] = [
  ['--unshare-user', '--uid', '65534', '--gid', '65534', '--disable-userns'],
  ['--unshare-user', '--uid', '65534', '--gid', '65534'],
  [],
];
const PROCS: string[][] = [
  ['--proc', '/proc'],
  ['--dir', '/proc'],
];

let probed: Promise<BwrapProbe> | undefined;

/** Whether bubblewrap can start this Node here, and in which way; tried once per process. */
export function probeBwrap(): Promise<BwrapProbe> {
  probed ??= probe();
  return probed;
}

async function probe(): Promise<BwrapProbe> {
  if (process.platform !== 'linux')
    return { works: false, reason: `bubblewrap needs Linux, this is ${process.platform}` };
  let reason = '';
  for (const proc of PROCS) {
    for (const user of USERS) {
      const variant = { user, proc };
      const failure = await tryStart([
        ...isolation(variant, false),
        ...sealed(),
        '--',
        process.execPath,
        '-e',
        '0',
      ]);
      if (failure === undefined) return { works: true, variant };
      if (failure.missing) return { works: false, reason: 'bubblewrap (bwrap) is not installed' };
      reason ||= failure.message;
    }
  }
  return { works: false, reason: `bubblewrap is installed but cannot make a sandbox here: ${reason}` };
}

function tryStart(args: string[]): Promise<{ missing: boolean; message: string } | undefined> {
  return new Promise((resolve) => {
    execFile(
      'bwrap',
      args,
      { timeout: PROBE_MS, env: { PATH: process.env.PATH } },
      (error, _stdout, stderr) => {
        if (!error) return resolve(undefined);
        const message = (stderr.trim().split('\n')[0] || messageOf(error)).slice(0, 300);
        resolve({ missing: error.code === 'ENOENT', message });
      },
    );
  });
}

/** bwrap's arguments up to `--`: own namespaces, and a file system of only what is granted. */
export function bwrapArgs(
  probe: BwrapProbe & { works: true },
  grants: Grants,
  permissions: Permissions,
  root: string,
): string[] {
  const childProcesses = permissions.platform?.childProcess === true;
  return [
    ...isolation(probe.variant, hasRawNetwork(permissions)),
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

/** The loader and the libraries of a dynamically linked Node. */
const LIBRARY_FOLDERS = ['/usr/lib', '/usr/lib64', '/usr/lib32', '/lib', '/lib64', '/lib32', '/nix/store'];
const PROGRAM_FOLDERS = ['/usr', '/bin', '/sbin'];
const NETWORK_FILES = [
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/nsswitch.conf',
  '/etc/gai.conf',
  '/etc/ssl',
  '/etc/pki',
];

function isolation(variant: Variant, sharesNetwork: boolean): string[] {
  const node = realpathSync(process.execPath);
  return [
    ...variant.user,
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(sharesNetwork ? [] : ['--unshare-net']),
    // The sandbox dies with the daemon, however that dies; Node is its first process, so that nothing outlives Node.
    '--die-with-parent',
    '--as-pid-1',
    '--new-session',
    '--cap-drop',
    'ALL',
    ...LIBRARY_FOLDERS.flatMap(systemFolder),
    ...['/etc/ld.so.cache', '/etc/localtime'].flatMap((path) => readOnly(path)),
    ...variant.proc,
    '--dev',
    '/dev',
    ...inMemory('/dev/shm', SHARED_MEMORY_BYTES),
    ...inMemory('/tmp', TMP_BYTES),
    '--ro-bind',
    node,
    node,
  ];
}

function inMemory(path: string, bytes: number): string[] {
  return ['--size', String(bytes), '--tmpfs', path];
}

/** The root and `/dev` are in memory as well, without a size of their own: read-only once everything is mounted. */
function sealed(): string[] {
  return ['--remount-ro', '/dev', '--remount-ro', '/'];
}

/** `/lib` is a link to `/usr/lib` on merged systems; inside it must be one too. */
function systemFolder(path: string): string[] {
  if (!existsSync(path)) return [];
  if (lstatSync(path).isSymbolicLink()) return ['--symlink', readlinkSync(path), path];
  return ['--ro-bind', path, path];
}

function readOnly(path: string): string[] {
  return ['--ro-bind-try', path, path];
}
