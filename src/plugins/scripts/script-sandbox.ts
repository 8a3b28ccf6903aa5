import { existsSync } from 'node:fs';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { WorkingBwrap } from '../sandbox/bwrap.ts';
import { chooseSandbox } from '../sandbox/launch.ts';
import { isMachineRoot, userSwitchFault } from '../sandbox/script-args.ts';
import { coversOf, type HiddenPlaces } from '../sandbox/script-covers.ts';

export interface ScriptSandbox {
  bwrap: WorkingBwrap;
  /** Whether scripts run as a user of their own, because the service runs as root. */
  switchesUser: boolean;
  /** Options of bubblewrap that cover paths which scripts must not read. */
  covers: readonly string[];
}

/**
 * Returns the sandbox of scripts. Throws SANDBOX_ERROR if bubblewrap is not in use, because Node's permission model
 * does not confine programs. Throws it, too, if scripts could read the project. @spec docs/workflows.md "Scripts"
 */
export async function requireScriptSandbox(places: HiddenPlaces): Promise<ScriptSandbox> {
  const chosen = await chooseSandbox(places.config.execution.worker.sandbox);
  // Without this file, the memory and the number of a script's processes are unknown.
  const canCount = existsSync('/proc/thread-self/children');
  if (chosen.mode === 'bwrap' && canCount) {
    const { bwrap } = chosen;
    return { bwrap, switchesUser: await requireUserSwitch(bwrap), covers: await coversOf(places) };
  }
  const reason = chosen.mode === 'bwrap' ? 'this kernel does not list child processes' : chosen.reason;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `Scripts (run:) run only inside bubblewrap, which is not in use: ${reason}. Install bubblewrap, and set execution.worker.sandbox to "auto" or "bwrap".`,
    { details: { reason } },
  );
}

/**
 * Returns whether scripts need a user of their own. The kernel does not limit the number of root's processes, so a
 * script as root could slow down the whole machine.
 */
async function requireUserSwitch(bwrap: WorkingBwrap): Promise<boolean> {
  if (!isMachineRoot()) return false;
  const reason = await userSwitchFault(bwrap);
  if (reason !== undefined)
    throw new PlatformError(
      'SANDBOX_ERROR',
      `Scripts (run:) are not started as root, and switching to another user failed: ${reason}. Run svc as another user, or install setpriv (util-linux).`,
      { details: { reason } },
    );
  return true;
}
