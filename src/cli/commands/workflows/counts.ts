import { z } from 'zod';
import { countRuns, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { countFlags, countQuery, countsTable } from '../../hour-counts.ts';

/** @spec docs/workflows.md "Find runs" */
export const counts = defineCommand({
  name: 'workflows counts',
  summary: 'Count runs per hour, by how they ended',
  example: 'svc workflows counts --since 2d',
  args: z.object(countFlags),
  async run(flags, { client, clock }) {
    return ok(await client.call(countRuns, { query: countQuery(flags, clock.now()) }));
  },
  text: (reply: ReplyOf<typeof countRuns>, style) =>
    countsTable(reply, ['total', 'open', 'succeeded', 'failed', 'cancelled'], style),
});
