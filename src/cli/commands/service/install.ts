import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { placeOf, writePlace } from './place.ts';
import { launchdPlist, stopMsOf, systemdUnit } from './unit.ts';

interface Installed {
  manager: 'systemd' | 'launchd';
  unit: string;
  /** Where it was written; null: it was only printed. */
  file: string | null;
  /** The command that starts it. */
  start: string;
}

/** @spec docs/operations.md "As a service of the machine" */
export const install = defineCommand({
  name: 'service install',
  summary: 'Print a systemd unit (macOS: launchd) that runs the platform, or write it',
  example: 'svc service install --user --write',
  args: z.object({
    write: z.boolean().default(false).describe('write it where the service manager looks'),
    user: z.boolean().default(false).describe('a service of this user, not of the machine'),
  }),
  async run({ write, user }, { platform, env, ui }) {
    const { projectDir, dataDir, configFile, profile, config } = platform();
    const place = placeOf(user, env);
    const ownHome = Boolean(env.SVC_HOME);
    const options = { projectDir, dataDir, configFile, profile, user, ownHome, stopMs: stopMsOf(config) };
    const unit = place.manager === 'systemd' ? systemdUnit(options) : launchdPlist(options);
    if (write) {
      writePlace(place, unit);
      ui.note(`Start it:\n  ${place.start}`);
      if (user && place.manager === 'systemd')
        ui.note('To have it run while you are logged out:\n  loginctl enable-linger');
    }
    return ok<Installed>({
      manager: place.manager,
      unit,
      file: write ? place.file : null,
      start: place.start,
    });
  },
  text: ({ unit, file }: Installed) => file ?? unit.trimEnd(),
});
