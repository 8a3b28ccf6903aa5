import { existsSync } from 'node:fs';
import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { placeOf, removePlace } from './place.ts';

interface Uninstalled {
  file: string;
  /** Whether a service was installed, which has been removed. */
  removed: boolean;
}

/** Defines `svc service uninstall`. @spec docs/operations.md "As a service of the machine" */
export const uninstall = defineCommand({
  name: 'service uninstall',
  summary: 'Remove the unit written by svc service install --write',
  example: 'svc service uninstall --user',
  args: z.object({
    user: z.boolean().default(false).describe('the user service instead of the system service'),
  }),
  async run({ user }, { env, ui }) {
    const place = placeOf(user, env);
    const removed = existsSync(place.file);
    removePlace(place);
    if (removed) ui.note(`The running service continues until you stop it:\n  ${place.stopRunning}`);
    return ok<Uninstalled>({ file: place.file, removed });
  },
  text: ({ file, removed }: Uninstalled) => (removed ? `removed ${file}` : `${file} does not exist.`),
});
