import { type Descriptions, under } from './describe.ts';
import { SCHEDULE_DESCRIPTIONS, WORKFLOW_DESCRIPTIONS } from './workflow.ts';

const schemaRef = (text: string): Descriptions => ({
  '': text,
  zod: 'A zod schema that the plugin exports: "<package>#<export>".',
  $ref: 'A JSON Schema in a file of the plugin: "<file>#<pointer>".',
});

const permissions: Descriptions = {
  '': 'What the code may touch; nothing unless listed.',
  fs: 'Files outside the folder of the plugin.',
  'fs.read': "Readable paths; relative ones resolve from the plugin's folder.",
  'fs.write': "Writable paths that exist; relative ones resolve from the plugin's folder.",
  network:
    'Hosts that `ctx.fetch` may call: "api.example.com", "*.example.com", "host:port". ["*"] opens raw sockets to any host.',
  env: 'Names of environment variables that the code sees.',
  platform: 'Services of the platform.',
  'platform.state': 'Durable values: `ctx.state`.',
  'platform.cache': 'Values with a time to live: `ctx.cache`.',
  'platform.dispatch': 'Calls of /internal/dispatch from a container.',
  'platform.childProcess': 'Starting programs. Counts as full access.',
  'platform.storage': 'Objects: `ctx.storage`.',
  'platform.llm': 'Language models: `ctx.llm`.',
  'platform.embeddings': 'Embedding models: `ctx.embeddings`.',
  'platform.vectorStore': 'Vectors: `ctx.vectorStore`.',
  'platform.workflows': 'Starts, reads, cancels and signals runs of the tenant.',
  'platform.jobs': 'Submits jobs of this plugin, and those that `invoke` lists.',
  'platform.webhooks': 'Reads the URLs of the webhooks of this plugin.',
  invoke: 'Commands and jobs of other plugins that may be called: "<plugin>/<command>".',
  quotas: 'Limits of the code.',
  'quotas.timeoutMs': 'Longest execution.',
  'quotas.memoryMb': 'Resident memory of a process.',
  'quotas.concurrency': 'Concurrent executions per process; a crash ends all of them.',
  'quotas.queue': 'Executions that may wait for a process; then 503.',
};
const replaced: Descriptions = { ...permissions, '': 'Replaces the permissions of the plugin entirely.' };

const HANDLER = 'Function to call: "<file>#<export>".';
const TIMEOUT = 'Time limit of one execution.';
const IDEMPOTENT = 'Whether a workflow may repeat it after a crash.';

const route: Descriptions = {
  method: 'HTTP method.',
  path: 'Literal path below basePath; ":name" is a parameter.',
  handler: HANDLER,
  description: 'Purpose of the route, in the API description.',
  timeoutMs: TIMEOUT,
  ...under('input', schemaRef('Schema of the body (POST, PUT, PATCH) or of the query (GET, DELETE).')),
  ...under('output', schemaRef('Schema of the result.')),
  errors: 'Codes that the handler may fail with.',
  'errors.*.code': 'Code in the error body.',
  'errors.*.http': 'Status of the answer, 400 to 599.',
  'errors.*.description': 'Meaning of the code, in the API description.',
  security: 'Who may call; any listed method suffices, "none" is public. Default: that of the plugin.',
  ...under('permissions', replaced),
};

const auth: Descriptions = {
  '': 'How the sender proves itself.',
  type: '"secret", "hmac", "provider" or "custom".',
  header: 'Header that carries the secret or the signature.',
  algorithm: 'Hash of the HMAC.',
  prefix: 'Text before the signature, such as "sha256=".',
  encoding: 'Encoding of the signature.',
  validator: 'Function that decides, as "<file>#<export>"; only {valid: true} passes.',
  provider: 'Sender whose documented scheme is used.',
  toleranceSeconds: 'Distance that a signed time may have from now, both ways.',
};

const webhook: Descriptions = {
  event: 'Name of the event, and segment of the URL.',
  handler: HANDLER,
  description: 'Purpose of the webhook, for lists.',
  ...under('auth', auth),
  multi: 'Whether each instance has a secret and a URL of its own.',
  async: 'Whether the sender gets 202 before the handler runs.',
  challenge: 'Answers an endpoint verification without the handler.',
  'challenge.bodyPath': 'Dot-path in the body that is compared.',
  'challenge.value': 'Value that marks a verification.',
  'challenge.replyPath': 'Dot-path in the body whose value is echoed.',
  idempotencyKey:
    'Dot-path in the body, or "header:<name>", of the id that identifies duplicates for 7 days.',
  onProvision: 'Function that gets the URL and the secret after each provisioning.',
  maxBodyBytes: 'Largest body; more is 413.',
  rateLimit: 'Limit of each endpoint.',
  'rateLimit.requestsPerMinute': 'Deliveries a minute.',
  timeoutMs: TIMEOUT,
  retry: 'Async only: repeats a failed delivery.',
  'retry.maxAttempts': 'Executions in all, the first one included.',
  'retry.backoff': 'Pauses between attempts.',
  'retry.backoff.initialMs': 'Pause before the second attempt.',
  'retry.backoff.factor': 'Factor by which each pause grows.',
  'retry.backoff.maxMs': 'Longest pause.',
  concurrency: 'Async only: deliveries of a namespace in flight at a time.',
  orderBy: 'Async only: dot-path in the body; deliveries with one value run one after the other.',
  sample: 'JSON file of the plugin that `svc webhooks send` delivers.',
};

const command: Descriptions = {
  id: 'Name of the command, unique on the platform.',
  handler: HANDLER,
  description: 'Purpose of the command, for lists.',
  ...under('input', schemaRef('Schema of the input.')),
  ...under('output', schemaRef('Schema of the result.')),
  timeoutMs: TIMEOUT,
  ...under('permissions', replaced),
  idempotent: IDEMPOTENT,
};

const job: Descriptions = {
  id: 'Name of the job.',
  handler: HANDLER,
  description: 'Purpose of the job, for lists.',
  ...under('input', schemaRef('Schema of the input.')),
  timeoutMs: TIMEOUT,
  idempotent: IDEMPOTENT,
};

/** Each key of `svc.plugin.json`, as editors and docs/manifest.md show it. */
export const MANIFEST_DESCRIPTIONS: Descriptions = {
  $schema: 'JSON Schema of this file, for editors.',
  schema: 'Version of the manifest; must be "svc.plugin/3".',
  id: 'Name of the plugin, such as "github" or "@acme/orders".',
  version: 'Version of the plugin (semantic versioning).',
  display: 'Texts for people.',
  'display.name': 'Title of the plugin.',
  'display.description': 'Purpose of the plugin.',
  engines: 'What the plugin needs.',
  'engines.svc': 'Versions of the platform that it runs on, such as "^0.1.0".',
  configSchema: 'JSON Schema of the settings under `pluginConfig`; defaults are filled in.',
  dependencies: 'Plugins that must be installed, with a range of versions.',
  ...under('permissions', permissions),
  commands: 'Functions that people, workflows and other plugins call.',
  ...under('commands.*', command),
  rest: 'HTTP routes.',
  'rest.basePath': 'Path of the routes; starts with "/v1/plugins/".',
  'rest.defaults': 'Settings of routes that declare none.',
  'rest.defaults.timeoutMs': TIMEOUT,
  'rest.defaults.security': 'Who may call routes that do not say.',
  'rest.security': 'The same, where `rest.defaults.security` is not given.',
  'rest.routes': 'The routes.',
  ...under('rest.routes.*', route),
  webhooks: 'Events that outside services deliver.',
  ...under('webhooks.*', webhook),
  workflows: 'Workflows, as steps or as a function of the plugin.',
  ...under('workflows.*', WORKFLOW_DESCRIPTIONS),
  jobs: 'Functions that run in the background.',
  ...under('jobs.*', job),
  schedules: 'Times at which workflows start.',
  ...under('schedules.*', SCHEDULE_DESCRIPTIONS),
  'schedules.*.workflow': 'Workflow to start.',
  lifecycle: 'Functions that the platform calls.',
  'lifecycle.onEnable': 'Called after the plugin is enabled, as "<file>#<export>".',
  'lifecycle.onDisable': 'Called before the plugin is disabled, as "<file>#<export>".',
};
