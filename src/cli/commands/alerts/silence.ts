import { z } from 'zod';
import { AlertKind, type AlertSilence, createAlertSilence } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { durationArg } from '../../duration-arg.ts';
import { UsageError } from '../../parse-args.ts';
import { timeText } from '../../time-text.ts';
import { everywhere, scopeOf } from './alert-args.ts';

/** @spec docs/alerts.md */
export const silence = defineCommand({
  name: 'alerts silence',
  summary: 'Keep matching alerts from being sent for a time',
  example: 'svc alerts silence --rule failed-runs --for 2h --comment "Deployment"',
  args: z.object({
    kind: AlertKind.optional().describe('kind of the alerts'),
    rule: z.string().optional().describe('rule of the alerts'),
    object: z.string().optional().describe('id of the object; "*" stands for any characters'),
    for: z.string().optional().describe('duration, such as 30m, 2h or 7d'),
    comment: z.string().optional().describe('why'),
    all: everywhere,
  }),
  async run({ kind, rule, object, for: duration, comment, all }, { client, clock }) {
    const given = Object.entries({ kind, rule, object }).filter(([, value]) => value !== undefined);
    if (given.length === 0)
      throw new UsageError('Pass --kind, --rule or --object.', {
        hint: 'svc alerts silence --rule <name> --for 2h',
      });
    if (duration === undefined)
      throw new UsageError('Pass --for.', { hint: 'svc alerts silence --rule <name> --for 2h' });
    const body = {
      matcher: Object.fromEntries(given),
      until: clock.now() + durationArg(duration),
      ...(comment === undefined ? {} : { comment }),
    };
    return ok(await client.call(createAlertSilence, { query: scopeOf(all), body }));
  },
  text: ({ id, until }: AlertSilence) =>
    `Silenced until ${timeText(until)}.\nTo end it: svc alerts unsilence ${id}`,
});
