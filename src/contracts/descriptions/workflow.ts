import { type Descriptions, under } from './describe.ts';

const backoff: Descriptions = {
  maxAttempts: 'Attempts in all, the first one included.',
  initialMs: 'Pause before the second attempt.',
  factor: 'Factor by which each pause grows.',
  maxMs: 'Longest pause.',
};

/** A retry policy, wherever one stands. */
export const RETRY_DESCRIPTIONS: Descriptions = {
  '': 'When a failed attempt is repeated.',
  ...backoff,
  jitter: '"full": each pause is a random part of its length; "none": the length itself.',
  deadlineMs: 'No attempt starts later than this after the first one.',
  on: 'Error classes that are repeated.',
  classes: 'Other figures for single error classes.',
  ...under('classes.*', backoff),
};

export const SCHEDULE_DESCRIPTIONS: Descriptions = {
  id: 'Name of the plan, unique in its list: what is known of it, such as a pause, stays with it. Default: a hash of `cron` and `timezone`.',
  cron: 'Cron expression of five fields, or six with seconds first.',
  timezone: 'IANA time zone of the cron expression, such as "Europe/Berlin".',
  overlap: 'While the run before is unfinished: "skip" the slot, "queue" it, or "allow" both.',
  catchUp: 'Slots missed while the platform was down: "none", the "latest", or "all" (100 at most).',
  input: 'Input of the runs.',
};

const trigger: Descriptions = {
  pluginId: 'Plugin that declares the webhook.',
  event: 'Event of the webhook.',
  instanceId: 'Instance of a `multi` webhook. Default: every instance.',
  if: 'Condition (CEL) over `delivery`; runs start where it holds.',
  input: 'Input of the run; expressions over `delivery` are evaluated. Default: the payload.',
};

const step: Descriptions = {
  id: 'Name of the step in expressions. Default: step1, step2, …',
  name: 'Title of the step.',
  uses: 'A command of a plugin ("<plugin>/<command>") or `set`, `http`, `wait`, `approval`, `signal`, `workflow`.',
  with: 'Input of the step; expressions are evaluated.',
  if: 'Condition (CEL). Default: no earlier step of the job failed.',
  timeoutMs: 'Time limit of each attempt.',
  continueOnError: 'Whether the job goes on when this step fails.',
  idempotent: 'A second execution does no harm: the step runs again after a crash.',
  idempotencyKey:
    'Handed to the handler, and sent by `http`, so that a second execution has no second effect.',
};

const job: Descriptions = {
  name: 'Title of the job.',
  needs: 'Jobs that must end before this one starts.',
  if: 'Condition (CEL). Default: all jobs in `needs` succeeded.',
  strategy: 'Runs the job once for each combination of values.',
  'strategy.matrix': 'Values by name; in expressions `matrix.<name>`.',
  'strategy.maxParallel': 'Combinations at a time.',
  'strategy.failFast': 'Whether a failed combination cancels the others.',
  timeoutMs: 'Time limit of the job.',
  continueOnError: 'Whether the run succeeds although this job failed.',
  outputs: 'Values for other jobs: `needs.<job>.outputs`.',
  steps: 'Steps, one after the other.',
  ...under('steps.*', step),
  ...under('steps.*.retry', RETRY_DESCRIPTIONS),
};

/** Each key of a workflow file, or of an entry of a manifest's `workflows`. */
export const WORKFLOW_DESCRIPTIONS: Descriptions = {
  $schema: 'JSON Schema of this file, for editors.',
  id: 'Name by which runs are started.',
  name: 'Title of the workflow.',
  description: 'Purpose of the workflow, for lists.',
  version: 'Version of the definition, as its author counts.',
  inputs: 'JSON Schema (2020-12) of the input.',
  signals: 'JSON Schemas (2020-12) of the payloads of signals, by name.',
  on: 'What starts the workflow.',
  'on.manual': 'Whether it may be started by a call.',
  'on.schedule': 'Times at which it starts.',
  ...under('on.schedule.*', SCHEDULE_DESCRIPTIONS),
  'on.webhook': 'Webhooks whose deliveries start it, once their handler has succeeded.',
  ...under('on.webhook', trigger),
  ...under('on.webhook.*', trigger),
  concurrency: 'Limit on runs that share a key.',
  'concurrency.key': 'Key of a run; expressions over `input` are evaluated.',
  'concurrency.limit': 'Runs with one key at a time.',
  'concurrency.strategy': 'What happens to a run above the limit.',
  timeoutMs: 'Time limit of the run, from its first start.',
  cleanUpTimeoutMs: 'Time limit of its clean-up once it is cancelled, or its time is up.',
  ...under('retry', { ...RETRY_DESCRIPTIONS, '': 'Retry policy of steps that have none.' }),
  handler: 'Function that is the workflow, as "<file>#<export>" (plugins only).',
  outputs: 'Output of the run; expressions over `jobs` are evaluated.',
  jobs: 'Jobs by name.',
  ...under('jobs.*', job),
};
