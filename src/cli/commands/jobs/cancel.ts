import { z } from 'zod';
import { cancelJob, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { coloured } from '../workflows/views.ts';
import { JobArg } from './arguments.ts';

export const cancel = defineCommand({
  name: 'jobs cancel',
  summary: 'Cancel a job',
  example: 'svc jobs cancel job_01b8dac5',
  args: z.object({ job: JobArg }),
  run: async ({ job }, { client }) => ok(await client.call(cancelJob, { params: { jobId: job } })),
  text: ({ cancelled, status }: ReplyOf<typeof cancelJob>, style) =>
    cancelled
      ? `The job is ${coloured(status, style)}.`
      : `The job had already ended: ${coloured(status, style)}.`,
});
