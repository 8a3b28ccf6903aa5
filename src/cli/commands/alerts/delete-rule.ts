import { z } from 'zod';
import { AlertRuleName, deleteAlertRule } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { everywhere, scopeOf } from './alert-args.ts';

/** @spec docs/alerts.md */
export const deleteRule = defineCommand({
  name: 'alerts delete-rule',
  summary: 'Delete a rule; its alerts end without a message',
  example: 'svc alerts delete-rule failed-runs',
  args: z.object({ name: AlertRuleName.describe('name of the rule'), all: everywhere }),
  positionals: ['name'],
  run: async ({ name, all }, { client }) =>
    ok(await client.call(deleteAlertRule, { params: { name }, query: scopeOf(all) })),
  text: () => 'Deleted.',
});
