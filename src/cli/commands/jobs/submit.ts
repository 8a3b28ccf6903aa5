import { z } from 'zod';
import { submitJob } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { startFields, startFlags } from '../../start-flags.ts';
import { jobPairs } from './job-text.ts';

export const submit = defineCommand({
  name: 'jobs submit',
  summary: "Submit a background job to a plugin's job handler",
  example: `svc jobs submit github/sync --input '{"repository": "octo/hello"}'`,
  args: z.object({
    handler: z.string().regex(/.\/./, 'must be <plugin>/<job>').describe('<plugin>/<job>'),
    ...startFlags,
    attempts: z.coerce
      .number()
      .int()
      .min(1)
      .max(100)
      .optional()
      .describe('maximum attempts on transient failures'),
  }),
  async run({ handler, attempts, ...start }, { client, cwd, ui }) {
    const body = {
      handler,
      ...(await startFields(start, cwd)),
      ...(attempts === undefined ? {} : { retry: { maxAttempts: attempts } }),
    };
    const { job } = await client.call(submitJob, { body });
    ui.note(`Show the result with: svc jobs show ${job.id}`);
    return ok(job);
  },
  text: jobPairs,
});
