import { z } from 'zod';
import { type AlertTestResult, testAlerts } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { table } from '../../table.ts';
import { everywhere, scopeOf } from './alert-args.ts';

/** @spec docs/alerts.md */
export const test = defineCommand({
  name: 'alerts test',
  summary: 'Send a test to a channel, or to all channels of a rule',
  example: 'svc alerts test --channel ops',
  args: z.object({
    channel: z.string().optional().describe('name of the channel'),
    rule: z.string().optional().describe('name of the rule'),
    all: everywhere,
  }),
  async run({ channel, rule, all }, { client }) {
    if ((channel === undefined) === (rule === undefined))
      throw new UsageError('Pass either --channel or --rule.', { hint: 'svc alerts channels' });
    const body = channel === undefined ? { rule } : { channel };
    return ok(await client.call(testAlerts, { query: scopeOf(all), body: body as never }));
  },
  text({ results }: { results: AlertTestResult[] }, style) {
    if (results.length === 0) return 'The rule has no channels.';
    const rows = results.map(({ channel, type, ok: isSent, error }) => [
      channel,
      type ?? '-',
      isSent ? style.green('sent') : style.red('failed'),
      error ?? '',
    ]);
    return table(['channel', 'type', 'result', 'error'], rows, style);
  },
});
