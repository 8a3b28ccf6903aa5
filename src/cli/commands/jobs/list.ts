import { z } from 'zod';
import { listJobs, type ReplyOf, RunStatus } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { moreLine, pageShort } from '../../list-page.ts';
import { jobsTable } from '../workflows/views.ts';

export const list = defineCommand({
  name: 'jobs list',
  summary: 'List jobs, newest first',
  example: 'svc jobs list --status failed',
  args: z.object({
    status: z
      .array(RunStatus)
      .default([])
      .describe(`repeatable; one of ${RunStatus.options.join(', ')}`),
    handler: z.string().optional().describe('only jobs of this handler'),
    limit: z.coerce.number().int().min(1).max(1000).default(20).describe('number of jobs'),
    cursor: z.string().optional().describe('nextCursor of the previous page'),
  }),
  short: pageShort,
  run: async ({ status, ...query }, { client }) =>
    ok(await client.call(listJobs, { query: { ...query, ...(status.length > 0 ? { status } : {}) } })),
  text: ({ items, nextCursor }: ReplyOf<typeof listJobs>, style) =>
    jobsTable(items, style) + moreLine(nextCursor, style),
});
