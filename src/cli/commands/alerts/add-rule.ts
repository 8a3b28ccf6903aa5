import { z } from 'zod';
import { AlertKind, type AlertRule, AlertRuleName, createAlertRule } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { everywhere, scopeOf } from './alert-args.ts';

const channelsOf = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** @spec docs/alerts.md */
export const addRule = defineCommand({
  name: 'alerts add-rule',
  summary: 'Add a rule of alerts',
  example: 'svc alerts add-rule failed-runs --kind run.failed --channels ops',
  args: z.object({
    name: AlertRuleName.describe('name of the rule'),
    kind: AlertKind.optional().describe('what the rule observes'),
    channels: z.string().optional().describe('names of channels, separated by commas'),
    settings: z
      .string()
      .optional()
      .describe('further settings as JSON, such as match and threshold; "@<file>" reads a file')
      .meta({ placeholder: 'json' }),
    all: everywhere,
  }),
  positionals: ['name'],
  async run({ name, kind, channels, settings, all }, { client, cwd }) {
    if (kind === undefined)
      throw new UsageError('Pass --kind.', {
        hint: `svc alerts add-rule ${name} --kind run.failed --channels ops`,
      });
    const given = settings === undefined ? {} : ((await readJson('--settings', settings, cwd)) as object);
    const body = { ...given, name, kind, channels: channelsOf(channels) };
    return ok(await client.call(createAlertRule, { query: scopeOf(all), body: body as never }));
  },
  text: ({ name }: AlertRule) => `Added. Try it: svc alerts test --rule ${name}`,
});
