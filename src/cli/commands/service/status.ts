import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../style.ts';
import { type Place, placeOf } from './place.ts';

interface ServiceState {
  manager: Place['manager'];
  file: string;
  installed: boolean;
  /** Whether it starts with the machine (or at the login of its user); null: the service manager could not be asked. */
  enabled: string | null;
  /** As the service manager calls it: `active`, `failed`, `inactive`. */
  state: string | null;
  /** Of what runs by it; null when nothing does. */
  pid: number | null;
}

/** Whether the machine keeps the platform running; `svc status` tells of what runs, however it was started. */
export const status = defineCommand({
  name: 'service status',
  summary: 'Whether the unit is installed, starts by itself, and what the service manager says of it',
  example: 'svc service status --user',
  args: z.object({ user: z.boolean().default(false).describe('the service of this user') }),
  async run({ user }, { env }) {
    const place = placeOf(user, env);
    const installed = existsSync(place.file);
    const told = installed ? await ask(place, user) : { enabled: null, state: null, pid: null };
    return ok<ServiceState>({ manager: place.manager, file: place.file, installed, ...told });
  },
  text({ file, installed, enabled, state, pid, manager }: ServiceState, style) {
    if (!installed) return `There is no ${file}; svc service install --write makes it.`;
    return pairs(
      [
        ['unit', file],
        ['enabled', enabled ?? `(${manager} cannot be asked here)`],
        ['state', state === 'failed' ? style.red(state) : (state ?? '-')],
        ['pid', pid === null ? '-' : String(pid)],
      ],
      style,
    );
  },
});

async function ask(
  { manager, unit }: Place,
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

/** Null when it cannot be asked: no such program, or none that answers. */
function output(program: string, args: string[]): Promise<string | null> {
  return new Promise((resolve) =>
    execFile(program, args, { timeout: 5000 }, (error, stdout) => resolve(error ? null : stdout)),
  );
}
