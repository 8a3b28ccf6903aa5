import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import process from 'node:process';
import { PlatformError } from '../../kit/errors/errors.ts';
import { locate } from '../../kit/process/locate-program.ts';
import {
  type BwrapProbeOptions,
  isolation,
  NETWORK_FILES,
  PROGRAM_FOLDERS,
  readOnly,
  STATUS_FD,
  sealed,
  systemFolder,
  tryStart,
  usableFolders,
  type Variant,
  type WorkingBwrap,
} from './bwrap.ts';
import { ALTERNATIVES } from './script-covers.ts';
import { createSharedProbe } from './shared-probe.ts';

/** Paths of a script's files in its sandbox. */
export const SCRIPT_PATHS = {
  folder: '/workspace',
  home: '/svc/home',
  script: '/svc/script',
  output: '/svc/output',
} as const;

export interface ScriptMounts {
  /** Paths on this machine that the script gets at `SCRIPT_PATHS`. */
  paths: Record<keyof typeof SCRIPT_PATHS, string>;
  env: Record<string, string>;
  network: boolean;
  /** Options that cover paths which scripts must not read. */
  covers: readonly string[];
  /** Whether the sandbox starts as root, and `asUser` then switches to another user. */
  switchesUser: boolean;
}

/**
 * Returns bwrap's options for a script of a workflow step. They contain secrets, so bwrap must read them from a file
 * descriptor: other users of the machine can read a command line.
 */
export function scriptArgs({ variant }: WorkingBwrap, mounts: ScriptMounts): string[] {
  const { paths, env, network, covers, switchesUser } = mounts;
  return [
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...systemOf(variant, network, switchesUser),
    ...covers,
    ...['--bind', paths.folder, SCRIPT_PATHS.folder],
    ...['--bind', paths.home, SCRIPT_PATHS.home],
    ...['--ro-bind', paths.script, SCRIPT_PATHS.script],
    ...['--bind', paths.output, SCRIPT_PATHS.output],
    ...sealed(),
    ...['--json-status-fd', String(STATUS_FD)],
  ];
}

function systemOf(variant: Variant, network: boolean, switchesUser: boolean): string[] {
  return [
    ...(switchesUser ? usableFolders(['/etc', dirname(SCRIPT_PATHS.script)]) : []),
    // bwrap as process 1 reaps orphans, and its end kills all processes of the script.
    ...isolation(switchesUser ? { ...variant, user: [] } : variant, {
      network,
      asPid1: false,
      forAllUsers: switchesUser,
    }),
    ...(switchesUser ? ['--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID'] : []),
    ...(network ? NETWORK_FILES.flatMap((path) => readOnly(path)) : []),
    ...PROGRAM_FOLDERS.flatMap(systemFolder),
    ...readOnly(ALTERNATIVES),
  ];
}

/** Start and number of user ids that systemd's page "Users, Groups, UIDs and GIDs" lists as unused. */
const FIRST_USER = 0x7000_0000;
const USERS = 0x1000_0000;

/** Returns the user id of a run's scripts. It is the same after a restart, because the working folder belongs to it. */
export function userOf(runId: string): number {
  return FIRST_USER + (createHash('sha256').update(runId).digest().readUInt32BE() % USERS);
}

/** Returns the start of a command line that switches from root to another user. */
export function asUser(user: number): string[] {
  const setpriv = locate('setpriv', process.env.PATH) ?? 'setpriv';
  const id = String(user);
  return [setpriv, '--reuid', id, '--regid', id, '--clear-groups', '--inh-caps=-all', '--'];
}

/**
 * Returns whether this process is the root of the machine, whose processes the kernel does not limit. The root of a
 * user namespace, as in a rootless container, is another user of the machine.
 */
export function isMachineRoot(): boolean {
  if (process.getuid?.() !== 0) return false;
  try {
    return /^\s*0\s+0\s/.test(readFileSync('/proc/self/uid_map', 'utf8'));
  } catch {
    return true;
  }
}

/** Returns why the root of this machine cannot switch to another user in the sandbox, or undefined if it can. */
export const userSwitchFault = createUserSwitchCheck();

/**
 * Creates `userSwitchFault`. It throws SANDBOX_ERROR if the machine is too busy to tell. Only a success is kept, because
 * a full process table looks like a refusal.
 */
export function createUserSwitchCheck(options: BwrapProbeOptions = {}) {
  const probes = new WeakMap<WorkingBwrap, ReturnType<typeof probeOf>>();

  function probeOf({ variant }: WorkingBwrap) {
    return createSharedProbe(
      async () => tryStart(userSwitch(variant), options),
      (failure) => failure === undefined,
    );
  }
  return async (bwrap: WorkingBwrap): Promise<string | undefined> => {
    if (locate('setpriv', process.env.PATH) === undefined) return 'setpriv (util-linux) is not installed';
    const probe = probes.get(bwrap) ?? probeOf(bwrap);
    probes.set(bwrap, probe);
    const failure = await probe();
    if (failure?.kind !== 'undecided') return failure?.message;
    throw new PlatformError(
      'SANDBOX_ERROR',
      `Scripts (run:) cannot be started now, because this machine is too busy: ${failure.message}. Try again.`,
      { details: { reason: failure.message } },
    );
  };
}

function userSwitch(variant: Variant): string[] {
  const program = ['/bin/sh', '-c', ':'];
  return [...systemOf(variant, false, true), ...sealed(), '--', ...asUser(FIRST_USER), ...program];
}
