import { z } from 'zod';
import { listRunLogs, type RunLogLine } from '../../../contracts/index.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { RunArg } from './arguments.ts';
import { followLogs, logLine } from './follow-run.ts';

export const logs = defineCommand({
  name: 'workflows logs',
  summary: "Show a run's log lines, or follow them until it ends",
  example: 'svc workflows logs run_01b8dac5 -f',
  streams: 'always',
  args: z.object({
    run: RunArg,
    step: z.string().optional().describe('only lines of this step: <job>.<step>'),
    follow: z.boolean().default(false).describe('follow until the run ends'),
  }),
  short: { follow: 'f' },
  async run({ run, step, follow }, context) {
    if (follow) return streamed(await followLogs(context, run, step));
    let count = 0;
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: { items: RunLogLine[]; nextCursor: string | null } = await context.client.call(
        listRunLogs,
        {
          params: { runId: run },
          query: { limit: 1000, cursor, stepId: step },
        },
      );
      for (const line of page.items) context.ui.record(line, (shown) => logLine(shown, context));
      count += page.items.length;
      cursor = page.nextCursor;
    }
    if (count === 0) context.ui.note('No log lines.');
    return streamed(0);
  },
});
