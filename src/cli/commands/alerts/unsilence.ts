import { z } from 'zod';
import { deleteAlertSilence } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { everywhere, scopeOf } from './alert-args.ts';

/** @spec docs/alerts.md */
export const unsilence = defineCommand({
  name: 'alerts unsilence',
  summary: 'End a silence; alerts that still fire are sent',
  example: 'svc alerts unsilence sil_019ac1f2-7c1e-7a43-b1f0-1f6a2b3c4d5e',
  args: z.object({ id: z.string().min(1).max(64).describe('id of the silence'), all: everywhere }),
  positionals: ['id'],
  run: async ({ id, all }, { client }) =>
    ok(await client.call(deleteAlertSilence, { params: { id }, query: scopeOf(all) })),
  text: () => 'The silence has ended.',
});
