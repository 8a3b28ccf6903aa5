import { z } from 'zod';
import {
  cancelJob,
  getJob,
  type Job,
  listJobs,
  type ReplyOf,
  RunStatus,
  submitJob,
} from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { moreLine, pageShort } from '../../list-page.ts';
import { pairs, type Style } from '../../style.ts';
import { timeText } from '../../time-text.ts';
import { InputFlag, readInput } from '../workflows/input.ts';
import { coloured, durationOf, jobsTable } from '../workflows/views.ts';

const JobArg = z.string().min(1).max(128).describe('job id');

export const submit = defineCommand({
  name: 'jobs submit',
  summary: "Submit a background job to a plugin's job handler",
  example: `svc jobs submit github/sync --input '{"repository": "octo/hello"}'`,
  args: z.object({
    handler: z.string().regex(/.\/./, 'must be <plugin>/<job>').describe('<plugin>/<job>'),
    input: InputFlag,
    key: z.string().optional().describe('idempotency key: a repeated key submits no second job'),
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
    const { job } = await client.call(submitJob, { body } as never);
    ui.note(`Show the result with: svc jobs show ${job.id}`);
    return ok(job);
  },
  text: jobPairs,
});

export const show = defineCommand({
  name: 'jobs show',
  summary: 'Show a job and its result',
  example: 'svc jobs show job_01b8dac5',
  args: z.object({ job: JobArg }),
  run: async ({ job }, { client }) => ok(await client.call(getJob, { params: { jobId: job as never } })),
  text: jobPairs,
});

export const list = defineCommand({
  name: 'jobs list',
  summary: 'List jobs, newest first',
  example: 'svc jobs list --status failed',
  args: z.object({
    status: RunStatus.optional().describe('only jobs with this status'),
    handler: z.string().optional().describe('only jobs of this handler'),
    limit: z.coerce.number().int().min(1).max(1000).default(20).describe('number of jobs'),
    cursor: z.string().optional().describe('nextCursor of the previous page'),
  }),
  short: pageShort,
  run: async (query, { client }) => ok(await client.call(listJobs, { query })),
  text: ({ items, nextCursor }: ReplyOf<typeof listJobs>, style) =>
    jobsTable(items, style) + moreLine(nextCursor, style),
});

export const cancel = defineCommand({
  name: 'jobs cancel',
  summary: 'Cancel a job',
  example: 'svc jobs cancel job_01b8dac5',
  args: z.object({ job: JobArg }),
  run: async ({ job }, { client }) => ok(await client.call(cancelJob, { params: { jobId: job as never } })),
  text: ({ cancelled, status }: ReplyOf<typeof cancelJob>, style) =>
    cancelled
      ? `The job is ${coloured(status, style)}.`
      : `The job had already ended: ${coloured(status, style)}.`,
});

/** Decisions are made on the single step of the run behind the job. */
function waitRows({ id, waitingFor }: Job): Array<[string, string]> {
  if (!waitingFor) return [];
  const command = waitingFor.for === 'decision' ? ` svc workflows decide ${id} job.run retry` : '';
  return [['waits for', `${waitingFor.for}${waitingFor.message ? `: ${waitingFor.message}` : ''}${command}`]];
}

function jobPairs(job: Job, style: Style): string {
  return pairs(
    [
      ['job', job.id],
      ['handler', job.handler],
      ['status', coloured(job.status, style)],
      ...waitRows(job),
      ...(job.queuedReason ? ([['reason', job.queuedReason]] as Array<[string, string]>) : []),
      ['attempts', String(job.attempts)],
      ['created', timeText(job.createdAt)],
      ['duration', durationOf(job)],
      ['result', job.result === null ? '-' : JSON.stringify(job.result)],
      ...(job.error
        ? ([['error', `${job.error.code} ${job.error.message}`]] as Array<[string, string]>)
        : []),
    ],
    style,
  );
}
