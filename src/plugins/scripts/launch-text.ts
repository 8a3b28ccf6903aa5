import { SCRIPT_PATHS } from '../sandbox/script-args.ts';
import type { ScriptSandbox } from './script-sandbox.ts';

/**
 * Prefix of the script's variables until the service has switched to the script's user. Otherwise, a variable such as
 * `LD_PRELOAD` would load code of the script into programs that run as root.
 */
const CARRIED = 'SVC_ENV_';

/** Tasks (processes and threads) of the script's user. Scripts have a user of their own if the service runs as root. */
const MAX_OWN_TASKS = 1024;
/** Limit for a user that also runs the service. Kernels before 5.14 count all tasks of this user. */
const MAX_SHARED_TASKS = 4096;

type Switch = Pick<ScriptSandbox, 'switchesUser'>;

/** Returns the variables with which the sandbox starts. */
export function sandboxVariables(
  env: Readonly<Record<string, string>>,
  { switchesUser }: Switch,
): Record<string, string> {
  if (!switchesUser) return env;
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [`${CARRIED}${name}`, value]));
}

/**
 * Returns the text for `sh` that waits for a line on stdin, sets limits and then starts its arguments. The limits: no
 * core dumps, files of at most 1 GiB (in blocks of 512 bytes), and tasks, whose option differs between shells.
 */
export function launchText(env: Readonly<Record<string, string>>, { switchesUser }: Switch): string {
  const tasks = switchesUser ? MAX_OWN_TASKS : MAX_SHARED_TASKS;
  const names = switchesUser ? Object.keys(env) : [];
  return [
    'read -r _ || exit 1; exec </dev/null',
    'ulimit -c 0; ulimit -f 2097152',
    `{ ulimit -u ${tasks} || ulimit -p ${tasks} || true; } 2>/dev/null`,
    ...names.map((name) => `export ${name}="$${CARRIED}${name}"; unset ${CARRIED}${name}`),
    // bwrap itself cannot enter the folder, because as root without capabilities it may not use folders of other users.
    `cd ${SCRIPT_PATHS.folder} && exec "$@"`,
  ].join('\n');
}
