import { z } from 'zod';
import { submitJob } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { InputFlag, readInput } from '../workflows/arguments.ts';
import { jobPairs } from './job-text.ts';

export const submit = defineCommand({
  name: 'jobs submit',
  summary: "Submit a background job to a plugin's job handler",
  example: `svc jobs submit github/sync --input '{"repository": "octo/hello"}'`,
  args: z.object({
    handler: z.string().regex(/.\/./, 'must be <plugin>/<job>').describe('<plugin>/<job>'),
    input: InputFlag,
    key: z.string().optional().describe('idempotency key: a repeated key has no second effect'),
    priority: z.coerce
      .number()
      .int()
      .min(-100)
      .max(100)
      .default(0)
      .describe('-100 to 100; higher goes first'),
    at: z.iso.datetime({ offset: true }).optional().describe('earliest start (ISO 8601)'),
    attempts: z.coerce
      .number()
      .int()
      .min(1)
      .max(100)
      .optional()
      .describe('maximum attempts on transient failures'),
  }),
  async run({ handler, input, key, priority, at: time, attempts }, { client, cwd, ui }) {
    const body = {
      handler,
      input: await readInput(input, cwd),
      priority,
      ...(key === undefined ? {} : { idempotencyKey: key }),
      ...(time === undefined ? {} : { runAt: Date.parse(time) }),
      ...(attempts === undefined ? {} : { retry: { maxAttempts: attempts } }),
    };
    const { job } = await client.call(submitJob, { body });
    ui.note(`Show the result with: svc jobs show ${job.id}`);
    return ok(job);
  },
  text: jobPairs,
});
