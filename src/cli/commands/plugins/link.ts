import { resolve } from 'node:path';
import { z } from 'zod';
import { linkPlugin } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pluginText } from './show.ts';

/** @spec docs/plugins.md "Developing" */
export const link = defineCommand({
  name: 'plugins link',
  summary: 'Link a development folder as a plugin',
  example: 'svc plugins link ./my-plugin',
  args: z.object({ folder: z.string().min(1).describe('plugin folder') }),
  run: async ({ folder }, { client, cwd }) =>
    ok(await client.call(linkPlugin, { body: { folder: resolve(cwd, folder) } })),
  text: pluginText,
});
