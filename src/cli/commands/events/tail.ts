import { z } from 'zod';
import { AnalyticsEvent, listEvents } from '../../../contracts/index.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { followStored } from '../../follow-stored.ts';
import { eventFlags, eventQuery, traceFlag } from './arguments.ts';
import { eventLine } from './event-line.ts';

/** @spec docs/observability.md "Analytics" */
export const tail = defineCommand({
  name: 'events tail',
  summary: 'Follow new events until Ctrl-C',
  example: 'svc events tail --type plugin.command.failed',
  streams: 'always',
  args: z.object({
    type: eventFlags.type,
    source: eventFlags.source,
    ...traceFlag,
    lines: z.coerce
      .number()
      .int()
      .min(0)
      .max(1000)
      .default(10)
      .describe('number of earlier events; default 10'),
  }),
  short: { lines: 'n' },
  async run({ lines, ...flags }, context) {
    const { globals, clock, ui } = context;
    await followStored(context, {
      path: listEvents.path,
      query: eventQuery(flags, globals, clock.now()),
      count: lines,
      take: (line) => ui.record(AnalyticsEvent.parse(JSON.parse(line)), (event) => eventLine(event, ui.out)),
    });
    return streamed(0);
  },
});
