import { z } from 'zod';
import { getJob } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { JobArg } from './arguments.ts';
import { jobPairs } from './job-text.ts';

export const show = defineCommand({
  name: 'jobs show',
  summary: 'Show a job and its result',
  example: 'svc jobs show job_01b8dac5',
  args: z.object({ job: JobArg }),
  run: async ({ job }, { client }) => ok(await client.call(getJob, { params: { jobId: job } })),
  text: jobPairs,
});
