import { type Descriptions, under } from './describe.ts';
import { WEBHOOK_AUTH } from './webhook-auth.ts';
import {
  MCP_DESCRIPTIONS,
  MCP_OFFERS_DESCRIPTIONS,
  SCHEDULE_DESCRIPTIONS,
  WORKFLOW_DESCRIPTIONS,
} from './workflow.ts';

const schemaRef = (text: string): Descriptions => ({
  '': text,
  zod: 'A zod schema exported by the plugin: "<package>#<export>".',
  $ref: 'A JSON Schema in a file of the plugin: "<file>#<pointer>".',
});

const permissions: Descriptions = {
  '': 'What the code may touch; nothing unless listed.',
  fs: 'Files outside the folder of the plugin.',
  'fs.read': "Readable paths; relative ones resolve from the plugin's folder.",
  'fs.write': "Writable paths that exist; relative ones resolve from the plugin's folder.",
  network:
    'Hosts that `ctx.fetch` may call: "api.example.com", "*.example.com", "host:port". ["*"] also allows raw sockets to any host.',
  env: 'Names of environment variables visible to the code.',
  secrets: 'Names of secrets that `ctx.secrets.get` returns.',
  connections: 'Names of OAuth 2 connections whose access tokens `ctx.connections.token` returns.',
  platform: 'Services of the platform.',
  'platform.state': 'Durable values: `ctx.state`.',
  'platform.cache': 'Values with a TTL: `ctx.cache`.',
  'platform.dispatch': 'Calls to /internal/dispatch from a container.',
  'platform.childProcess':
    'Starting programs: `true` counts as full access; `"sandboxed"` allows it only inside bubblewrap or a container, and elsewhere refuses to start the plugin.',
  'platform.storage': 'Objects: `ctx.storage`.',
  'platform.llm': 'Language models: `ctx.llm`.',
  'platform.embeddings': 'Embedding models: `ctx.embeddings`.',
  'platform.vectorStore': 'Vectors: `ctx.vectorStore`.',
  'platform.workflows': 'Start, read, cancel and signal workflow runs of the tenant.',
  'platform.jobs': 'Submit jobs of this plugin and those listed in `invoke`.',
  'platform.webhooks': "Read the URLs of this plugin's webhooks.",
  'platform.emit': 'Emit messages of the types in `events`: `ctx.emit`.',
  invoke: 'Callable commands and jobs of other plugins: "<plugin>/<command>".',
  quotas: 'Limits of the code.',
  'quotas.timeoutMs': 'Maximum time of an execution.',
  'quotas.memoryMb': 'Resident memory of a process.',
  'quotas.concurrency': 'Concurrent executions per process; a crash ends all of them.',
  'quotas.queue': 'Executions that may wait for a process; then 503.',
};
const replacement: Descriptions = { ...permissions, '': 'Replaces the permissions of the plugin entirely.' };

const HANDLER = 'Function to call: "<file>#<export>".';
const TIMEOUT = 'Time limit of one execution.';
const IDEMPOTENT = 'A workflow may repeat it after a crash.';

const route: Descriptions = {
  method: 'HTTP method.',
  path: 'Literal path below basePath; ":name" is a parameter.',
  handler: HANDLER,
  description: 'Purpose of the route, shown in the API description.',
  timeoutMs: TIMEOUT,
  ...under('input', schemaRef('Schema of the body (POST, PUT, PATCH) or of the query (GET, DELETE).')),
  ...under('output', schemaRef('Schema of the result.')),
  errors: 'Error codes of the handler.',
  'errors.*.code': 'Code in the error body.',
  'errors.*.http': 'HTTP status.',
  'errors.*.description': 'Meaning of the code, shown in the API description.',
  security: `Who may call; any listed method suffices, "none" is public. Default: the plugin's.`,
  ...under('permissions', replacement),
};

const place: Descriptions = {
  header: 'Name of a header.',
  query: 'Name of a query parameter.',
  field: 'Dot path in the body.',
};

const copied: Descriptions = { from: 'Place of the copied value.', ...under('from', place) };

const replyValue: Descriptions = {
  ...copied,
  hmac: "HMAC-SHA256 of a value, with the webhook's secret.",
  'hmac.of': 'Place of the value.',
  ...under('hmac.of', place),
  'hmac.encoding': 'Encoding of the HMAC.',
  'hmac.prefix': 'Text before the HMAC.',
};

const handshake: Descriptions = {
  method: 'Method of the request.',
  when: 'Conditions, which must all hold.',
  'when.*.at': 'Place of a value: a header, a query parameter or a field of the body.',
  ...under('when.*.at', place),
  'when.*.equals': 'Value that the place must have; default: any.',
  isAuthenticated: 'The sender is authenticated first, as for a delivery.',
  verifyToken: "Place whose value must be the webhook's secret.",
  ...under('verifyToken', place),
  effect: 'Effect beside the reply.',
  'effect.type': '"take-secret" or "confirm-subscription".',
  'effect.at': 'Place of the secret.',
  ...under('effect.at', place),
  reply: 'Response.',
  'reply.status': 'Status of the response.',
  'reply.headers': 'Headers of the response.',
  ...under('reply.headers.*', copied),
  'reply.text': 'Body as text.',
  ...under('reply.text', replyValue),
  'reply.json': 'Body as a JSON object.',
  ...under('reply.json.*', replyValue),
};

const webhook: Descriptions = {
  event: 'Name of the event; part of the URL.',
  handler: HANDLER,
  description: 'Purpose, shown in lists.',
  ...under('auth', WEBHOOK_AUTH),
  multi: 'Each instance has its own secret and URL.',
  async: 'The sender gets 202 before the handler runs.',
  challenge: 'Answers an endpoint verification without the handler.',
  'challenge.bodyPath': 'Dot-path of the compared value in the body.',
  'challenge.value': 'Value that marks a verification.',
  'challenge.replyPath': 'Dot-path of the echoed value.',
  idempotencyKey:
    'Dot-path in the body, or "header:<name>", of the id that identifies duplicates for 7 days.',
  onProvision: 'Function that gets URL and secret after each provisioning.',
  body: 'Format of the body: json, form, multipart, xml, text or raw.',
  contentTypes: 'Accepted media types; others are 415.',
  jsonField: 'Field of a form whose value is JSON.',
  reply: '"handler": what the handler returns is the response.',
  ackAfterMs: 'Sync only: time after which the sender is answered, while the handler goes on.',
  accepted: 'Response to an accepted delivery.',
  'accepted.status': 'Status of the response.',
  'accepted.contentType': 'Content type of the response.',
  'accepted.body': 'Body of the response.',
  handshakes: 'Requests that verify the URL.',
  ...under('handshakes.*', handshake),
  maxBodyBytes: 'Largest body; more is 413.',
  rateLimit: 'Limit of each endpoint.',
  'rateLimit.requestsPerMinute': 'Deliveries a minute.',
  timeoutMs: TIMEOUT,
  retry: 'Async only: retries of a failed delivery.',
  'retry.maxAttempts': 'Executions, including the first.',
  'retry.backoff': 'Delays between attempts.',
  'retry.backoff.initialMs': 'Delay before the second attempt.',
  'retry.backoff.factor': 'Growth of the delay.',
  'retry.backoff.maxMs': 'Maximum delay.',
  concurrency: 'Async only: maximum deliveries of a namespace in flight.',
  orderBy: 'Async only: dot path in the body; deliveries with the same value run in order.',
  sample: 'JSON file sent by `svc webhooks send`.',
};

const command: Descriptions = {
  id: 'Name of the command, unique on the platform.',
  handler: HANDLER,
  description: 'Purpose, shown in lists.',
  ...under('input', schemaRef('Schema of the input.')),
  ...under('output', schemaRef('Schema of the result.')),
  timeoutMs: TIMEOUT,
  ...under('permissions', replacement),
  idempotent: IDEMPOTENT,
  ...under('mcp', MCP_DESCRIPTIONS),
};

const job: Descriptions = {
  id: 'Name of the job.',
  handler: HANDLER,
  description: 'Purpose, shown in lists.',
  ...under('input', schemaRef('Schema of the input.')),
  timeoutMs: TIMEOUT,
  idempotent: IDEMPOTENT,
};

/** Description of each key of `svc.plugin.json`, for editors and docs/manifest.md. */
export const MANIFEST_DESCRIPTIONS: Descriptions = {
  $schema: 'JSON Schema of this file, for editors.',
  schema: 'Version of the manifest.',
  id: 'Name, such as "github" or "@acme/orders".',
  version: 'Semantic version.',
  display: 'Display texts.',
  'display.name': 'Title of the plugin.',
  'display.description': 'Purpose of the plugin.',
  engines: 'What the plugin needs.',
  'engines.svc': 'Supported versions of the platform, such as "^0.1.0".',
  configSchema: 'JSON Schema of the settings under `pluginConfig`; defaults are filled in.',
  dependencies: 'Required plugins, each with a range of versions.',
  ...under('permissions', permissions),
  commands: 'Functions for users, workflows and other plugins.',
  ...under('commands.*', command),
  rest: 'HTTP routes.',
  'rest.basePath': 'Path of the routes; starts with "/v1/plugins/".',
  'rest.defaults': 'Default settings of routes.',
  'rest.defaults.timeoutMs': TIMEOUT,
  'rest.defaults.security': 'Default security of routes.',
  'rest.security': 'Fallback for `rest.defaults.security`.',
  'rest.routes': 'The routes.',
  ...under('rest.routes.*', route),
  webhooks: 'Events delivered by external services.',
  ...under('webhooks.*', webhook),
  workflows: 'Workflows, defined as steps or as a function.',
  ...under('workflows.*', WORKFLOW_DESCRIPTIONS),
  jobs: 'Functions that run in the background.',
  ...under('jobs.*', job),
  ...under('mcp', MCP_OFFERS_DESCRIPTIONS),
  schedules: 'Schedules that start workflows.',
  ...under('schedules.*', SCHEDULE_DESCRIPTIONS),
  'schedules.*.workflow': 'Workflow to start.',
  events: 'Types of messages that the plugin emits, such as "order.paid".',
  ...under(
    'events.*.schema',
    schemaRef('Schema of the data: a JSON Schema, or a reference to one. Default: any data.'),
  ),
  'events.*.description': 'Purpose of the event, shown in the API description.',
  mcpServer:
    'MCP server whose tools are the commands, written by `svc plugins add-mcp` (docs/mcp-servers.md).',
  'mcpServer.package': 'npm package of the server.',
  'mcpServer.version': 'Exact version of the package.',
  'mcpServer.bin': 'Program, if the package has several.',
  'mcpServer.entry': 'File of the program in `node_modules`.',
  'mcpServer.url': 'Address of a server over HTTP, instead of a package.',
  'mcpServer.args': 'Arguments of the program.',
  'mcpServer.env': 'Environment variables of the program that are not secret.',
  'mcpServer.secrets': 'Environment variables or headers by name, each with the secret that it contains.',
  'mcpServer.tools': 'The approved tools.',
  'mcpServer.tools.*.name': 'Name that the server gave it.',
  'mcpServer.tools.*.title': 'Title of the server.',
  'mcpServer.tools.*.description': 'Description of the server.',
  'mcpServer.tools.*.inputSchema': 'Schema of its arguments.',
  'mcpServer.tools.*.outputSchema': 'Schema of its result.',
  'mcpServer.tools.*.annotations': 'Hints of the server.',
  'mcpServer.tools.*.digest': 'SHA-256 of the tool. A tool with another digest is refused.',
  lifecycle: 'Functions called by the platform.',
  'lifecycle.onEnable': 'Called after enabling: "<file>#<export>".',
  'lifecycle.onDisable': 'Called before disabling: "<file>#<export>".',
};
