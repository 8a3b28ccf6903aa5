import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { parseServices } from '../up/services.ts';
import { serviceManagerOf, writeServiceFile } from './service-manager.ts';
import { launchdPlist, stopMsOf, systemdUnit } from './unit.ts';

interface Installed {
  manager: 'systemd' | 'launchd';
  unit: string;
  /** Path of the written unit file. Null if the unit was only printed. */
  file: string | null;
  start: string;
}

/** @spec docs/operations.md "As a service of the machine" */
export const install = defineCommand({
  name: 'service install',
  summary: 'Print or write a systemd unit (macOS: launchd) that runs the platform',
  example: 'svc service install --user --write',
  args: z.object({
    write: z.boolean().default(false).describe('write it to the folder of the service manager'),
    user: z.boolean().default(false).describe('the user service instead of the system service'),
    services: z.string().optional().describe('as for up').meta({ placeholder: 'names' }),
  }),
  async run({ write, user, services: list }, { platform, env, ui }) {
    const services = list === undefined ? undefined : parseServices(list);
    const { projectDir, dataDir, configFile, profile, config } = platform();
    const serviceManager = serviceManagerOf(user, env);
    const ownHome = Boolean(env.SVC_HOME);
    const options = {
      ...{ projectDir, dataDir, configFile, profile, services, user, ownHome },
      stopMs: stopMsOf(config),
    };
    const unit = serviceManager.manager === 'systemd' ? systemdUnit(options) : launchdPlist(options);
    if (write) {
      writeServiceFile(serviceManager, unit);
      ui.note(`Start it with:\n  ${serviceManager.start}`);
      if (user && serviceManager.manager === 'systemd')
        ui.note('To keep it running after you log out:\n  loginctl enable-linger');
    }
    return ok<Installed>({
      manager: serviceManager.manager,
      unit,
      file: write ? serviceManager.file : null,
      start: serviceManager.start,
    });
  },
  text: ({ unit, file }: Installed) => file ?? unit.trimEnd(),
});
