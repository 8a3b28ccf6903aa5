import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../table.ts';
import { type ServiceManager, serviceManagerOf } from './service-manager.ts';

interface ServiceState {
  manager: ServiceManager['manager'];
  file: string;
  installed: boolean;
  /**
   * `UnitFileState` of systemd, such as `enabled` for a start at boot, or `yes` for launchd. Null if the unit is not
   * installed or the service manager does not answer.
   */
  enabled: string | null;
  /** State as the service manager reports it, such as `active`, `failed` or `inactive`. */
  state: string | null;
  /** Id of the main process. Null if the service is not running. */
  pid: number | null;
}

/**
 * Defines `svc service status`, which shows the state of the systemd or launchd unit. `svc status` shows the platform
 * instead.
 */
export const status = defineCommand({
  name: 'service status',
  summary: 'Show whether the unit is installed, enabled and running',
  example: 'svc service status --user',
  args: z.object({
    user: z.boolean().default(false).describe('the user service instead of the system service'),
  }),
  async run({ user }, { env }) {
    const serviceManager = serviceManagerOf(user, env);
    const installed = existsSync(serviceManager.file);
    const state = installed
      ? await queryManager(serviceManager, user)
      : { enabled: null, state: null, pid: null };
    return ok<ServiceState>({
      manager: serviceManager.manager,
      file: serviceManager.file,
      installed,
      ...state,
    });
  },
  text({ file, installed, enabled, state, pid, manager }: ServiceState, style) {
    if (!installed) return `${file} does not exist. Create it with svc service install --write.`;
    return pairs(
      [
        ['unit', file],
        ['enabled', enabled ?? `(${manager} does not answer)`],
        ['state', state === 'failed' ? style.red(state) : (state ?? '-')],
        ['pid', pid === null ? '-' : String(pid)],
      ],
      style,
    );
  },
});

async function queryManager(
  { manager, unit }: ServiceManager,
  user: boolean,
): Promise<Pick<ServiceState, 'enabled' | 'state' | 'pid'>> {
  if (manager === 'launchd') {
    const listed = await output('launchctl', ['list', unit]);
    const pid = Number(/"PID" = (\d+);/.exec(listed ?? '')?.[1] ?? 0) || null;
    return { enabled: listed === null ? null : 'yes', state: pid ? 'active' : 'inactive', pid };
  }
  const properties = ['UnitFileState', 'ActiveState', 'MainPID'];
  const flags = [...(user ? ['--user'] : []), 'show', unit, `--property=${properties.join(',')}`];
  const lines = (await output('systemctl', flags))?.split('\n') ?? [];
  const value = (name: string) => lines.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
  return {
    enabled: value('UnitFileState') || null,
    state: value('ActiveState') || null,
    pid: Number(value('MainPID')) || null,
  };
}

/** Returns stdout, or null if the program is missing or fails. */
function output(program: string, args: string[]): Promise<string | null> {
  return new Promise((resolve) =>
    execFile(program, args, { timeout: 5000 }, (error, stdout) => resolve(error ? null : stdout)),
  );
}
