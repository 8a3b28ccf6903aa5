import { z } from 'zod';
import { AlertChannelName, deleteAlertChannel } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { everywhere, scopeOf } from './alert-args.ts';

/** @spec docs/alerts.md */
export const deleteChannel = defineCommand({
  name: 'alerts delete-channel',
  summary: 'Delete a channel that no rule uses',
  example: 'svc alerts delete-channel ops',
  args: z.object({ name: AlertChannelName.describe('name of the channel'), all: everywhere }),
  positionals: ['name'],
  run: async ({ name, all }, { client }) =>
    ok(await client.call(deleteAlertChannel, { params: { name }, query: scopeOf(all) })),
  text: () => 'Deleted.',
});
