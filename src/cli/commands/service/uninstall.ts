import { existsSync } from 'node:fs';
import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { removeServiceFile, serviceManagerOf } from './service-manager.ts';

interface Uninstalled {
  file: string;
  /** Whether the unit was installed and has been removed. */
  removed: boolean;
}

/** @spec docs/operations.md "As a service of the machine" */
export const uninstall = defineCommand({
  name: 'service uninstall',
  summary: 'Remove the unit written by svc service install --write',
  example: 'svc service uninstall --user',
  args: z.object({
    user: z.boolean().default(false).describe('the user service instead of the system service'),
  }),
  async run({ user }, { env, ui }) {
    const serviceManager = serviceManagerOf(user, env);
    const removed = existsSync(serviceManager.file);
    removeServiceFile(serviceManager);
    if (removed) ui.note(`The running service continues until you stop it:\n  ${serviceManager.stopRunning}`);
    return ok<Uninstalled>({ file: serviceManager.file, removed });
  },
  text: ({ file, removed }: Uninstalled) => (removed ? `removed ${file}` : `${file} does not exist.`),
});
