import { type Descriptions, under } from './describe.ts';

/** Keys of `mcp` of commands and workflows. */
export const MCP_DESCRIPTIONS: Descriptions = {
  '': 'Offers it to agents as a tool (docs/mcp.md).',
  expose: 'Whether agents see it.',
  name: 'Name of the tool. Default: made from the ids.',
  title: 'Title of the tool.',
  description: 'Purpose and use, for the model. Default: the description.',
  readOnly: 'Whether it changes nothing.',
  destructive: 'Whether it can destroy data; it then needs the role admin.',
};

/** Keys of `mcp` of a manifest. */
export const MCP_OFFERS_DESCRIPTIONS: Descriptions = {
  '': 'Prompts and resources for agents (docs/mcp.md).',
  prompts: 'Prompts that clients can choose.',
  'prompts.*.id': 'Name of the prompt in the plugin.',
  'prompts.*.name': 'Name of the prompt. Default: made from the ids.',
  'prompts.*.title': 'Title of the prompt.',
  'prompts.*.description': 'Purpose of the prompt.',
  'prompts.*.arguments': 'Texts that the client enters.',
  'prompts.*.arguments.*.name': 'Name of the argument.',
  'prompts.*.arguments.*.description': 'Meaning of the argument.',
  'prompts.*.arguments.*.required': 'Whether the prompt needs it.',
  'prompts.*.arguments.*.values': 'Values that clients suggest.',
  'prompts.*.command': 'Command that returns the prompt. Its input: the arguments.',
  resources: 'Resources that clients can read.',
  'resources.*.uri': 'URI, with parameters in braces: `shop://orders/{id}`.',
  'resources.*.name': 'Name of the resource.',
  'resources.*.title': 'Title of the resource.',
  'resources.*.description': 'Content of the resource.',
  'resources.*.mimeType': 'Media type of the content.',
  'resources.*.command': 'Command that returns the content. Its input: `uri` and the parameters.',
};

const backoff: Descriptions = {
  maxAttempts: 'Maximum attempts, including the first.',
  initialMs: 'Delay before the second attempt.',
  initial: 'Delay before the second attempt, such as "1s".',
  factor: 'Factor by which the delay grows.',
  maxMs: 'Maximum delay.',
  max: 'Maximum delay, such as "1m".',
};

export const RETRY_DESCRIPTIONS: Descriptions = {
  '': 'Retry policy of failed attempts.',
  ...backoff,
  jitter: '"full": each delay is a random part of its length; "none": no randomness.',
  deadlineMs: 'Time after the first attempt beyond which no further one starts.',
  deadline: 'The same as a duration, such as "10m".',
  on: 'Error classes to retry.',
  classes: 'Overrides per error class.',
  ...under('classes.*', backoff),
};

export const SCHEDULE_DESCRIPTIONS: Descriptions = {
  id: 'Name of the schedule, unique in its list. Identifies it when it changes, so that a pause persists. Default: a hash of `cron` and `timezone`.',
  cron: 'Cron expression of five fields, or six with seconds first.',
  timezone: 'IANA time zone of the cron expression, such as "Europe/Berlin".',
  overlap: 'While the previous run is unfinished: "skip" the new run, "queue" it, or "allow" both.',
  catchUp: 'Runs missed while the platform was down: "none", the "latest", or "all" (100 at most).',
  input: 'Input of the runs.',
};

const endHandler: Descriptions = {
  if: 'CEL condition over `run` and `input`.',
  workflow: 'Workflow to start.',
  input:
    'Input of the started run; expressions over `run` and `input` are evaluated. Default: facts about the ended run.',
  message: 'Outgoing message to send.',
  'message.type': 'Event type of the message.',
  'message.data':
    'Data of the message; expressions over `run` and `input` are evaluated. Default: facts about the ended run.',
  'message.application': 'Send only to the endpoints of this application; may contain expressions.',
};

const trigger: Descriptions = {
  pluginId: 'Plugin that declares the webhook.',
  event: 'Event of the webhook.',
  instanceId: 'Instance of a `multi` webhook. Default: every instance.',
  if: 'Condition (CEL) over `delivery`; a run starts only if it is true.',
  input: 'Input of the run; expressions over `delivery` are evaluated. Default: the payload.',
};

const step: Descriptions = {
  id: 'Id of the step in expressions. Default: step1, step2, …',
  name: 'Title of the step.',
  uses: 'A command of a plugin ("<plugin>/<command>") or `set`, `http`, `wait`, `approval`, `signal`, `workflow`.',
  sleep: 'Waits for a duration, such as "24h", instead of `uses` and `with`; expressions are evaluated.',
  run: 'Script to run in a sandbox, instead of `uses` and `with`.',
  shell: 'Program that runs the script. Default: bash.',
  env: 'Environment variables of the script; expressions are evaluated.',
  network: 'Whether the script can use the network of the machine.',
  memoryMb: 'Memory limit of the script, its files in /tmp included.',
  with: 'Input of the step; expressions are evaluated.',
  if: 'Condition (CEL). Default: no previous step of the job failed.',
  timeoutMs: 'Time limit of each attempt.',
  timeout: 'Time limit of each attempt, such as "30s".',
  continueOnError: 'Whether the job continues if this step fails.',
  idempotent: 'Whether it is safe to execute twice: the step then runs again after a crash.',
  idempotencyKey:
    'Passed to the handler, and sent by `http`, so that a repeated execution has no second effect.',
};

const job: Descriptions = {
  name: 'Title of the job.',
  needs: 'Jobs that must finish before this one starts.',
  if: 'Condition (CEL). Default: all jobs in `needs` succeeded.',
  strategy: 'Runs the job once per combination of values.',
  'strategy.matrix': 'Values by name, available in expressions as `matrix.<name>`.',
  'strategy.maxParallel': 'Maximum concurrent combinations.',
  'strategy.failFast': 'Whether a failed combination cancels the others.',
  timeoutMs: 'Time limit of the job.',
  timeout: 'Time limit of the job, such as "1h".',
  continueOnError: 'Whether the run may succeed if this job fails.',
  outputs: 'Values for other jobs, available as `needs.<job>.outputs`.',
  steps: 'Steps, run in sequence.',
  ...under('steps.*', step),
  ...under('steps.*.retry', RETRY_DESCRIPTIONS),
};

/** Descriptions of the keys of a workflow file, or of an entry in a manifest's `workflows`. */
export const WORKFLOW_DESCRIPTIONS: Descriptions = {
  $schema: 'JSON Schema of this file, for editors.',
  id: 'Id used to start runs.',
  name: 'Title of the workflow.',
  description: 'Purpose of the workflow, shown in lists.',
  version: 'Version of the definition, chosen by its author.',
  inputs: 'JSON Schema (2020-12) of the input.',
  signals: 'JSON Schemas (2020-12) of the payloads of signals, by name.',
  signalApprovers: 'Who may send a signal, by its name.',
  'signalApprovers.*.roles': 'Roles of which the sender needs one, or a higher one.',
  on: 'Triggers of the workflow.',
  'on.manual': 'Whether it may be started manually.',
  'on.schedule': 'Schedules that start it.',
  ...under('on.schedule.*', SCHEDULE_DESCRIPTIONS),
  'on.webhook': 'Webhooks whose deliveries start it after their handler succeeds.',
  ...under('on.webhook', trigger),
  ...under('on.webhook.*', trigger),
  'on.failure': 'Handlers of runs that failed or timed out.',
  ...under('on.failure', endHandler),
  ...under('on.failure.*', endHandler),
  'on.success': 'Handlers of runs that succeeded.',
  ...under('on.success', endHandler),
  ...under('on.success.*', endHandler),
  concurrency: 'Concurrency limit of runs with the same key.',
  'concurrency.key': 'Key of a run; expressions over `input` are evaluated.',
  'concurrency.limit': 'Maximum concurrent runs with one key.',
  'concurrency.strategy': 'What to do with a run over the limit.',
  timeoutMs: 'Time limit of the run, from its first start.',
  timeout: 'Time limit of the run, from its first start, such as "7d".',
  cleanUpTimeoutMs: 'Time limit of the clean-up after the run is cancelled or times out.',
  cleanUpTimeout: 'Time limit of the clean-up, such as "1m".',
  ...under('retry', { ...RETRY_DESCRIPTIONS, '': 'Default retry policy of steps.' }),
  ...under('mcp', MCP_DESCRIPTIONS),
  handler: 'Workflow function, as "<file>#<export>" (plugins only).',
  permissions: 'What the definition may use.',
  'permissions.secrets':
    'Names of secrets, each of which a whole `with` value may take; an administrator must approve the definition.',
  outputs: 'Output of the run; expressions over `jobs` are evaluated.',
  jobs: 'Jobs by name.',
  ...under('jobs.*', job),
};
