import { existsSync } from 'node:fs';
import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { placeOf, removePlace } from './place.ts';

interface Uninstalled {
  file: string;
  /** False when there was none. */
  removed: boolean;
}

/** @spec docs/operations.md "As a service of the machine" */
export const uninstall = defineCommand({
  name: 'service uninstall',
  summary: 'Remove the unit that svc service install --write has written',
  example: 'svc service uninstall --user',
  args: z.object({ user: z.boolean().default(false).describe('the service of this user') }),
  async run({ user }, { env, ui }) {
    const place = placeOf(user, env);
    const removed = existsSync(place.file);
    removePlace(place);
    if (removed) ui.note(`What runs of it goes on until it is stopped:\n  ${place.stopRunning}`);
    return ok<Uninstalled>({ file: place.file, removed });
  },
  text: ({ file, removed }: Uninstalled) => (removed ? `removed ${file}` : `There is no ${file}.`),
});
