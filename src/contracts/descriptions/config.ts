import { ALERTS_DESCRIPTIONS } from './alerts-config.ts';
import { type Descriptions, under } from './describe.ts';
import { SOURCES_DESCRIPTIONS } from './sources-config.ts';

const listener = (port: string): Descriptions => ({
  host: 'Address to listen on. Use 0.0.0.0 only behind a firewall or a proxy with TLS.',
  port: `Port to listen on; 0: any free one. SVC_${port}_PORT and \`svc up --port\` win.`,
  drainMs: 'Time for requests and workflow steps to finish at a stop; killed 4 s later.',
});

const upstream: Descriptions = {
  url: 'Base URL; null: the service of this platform.',
  prefix: 'Forwarded path prefixes.',
  websocket: 'Forward WebSocket upgrades.',
  sandbox:
    'Answers get `Content-Security-Policy: sandbox`, so that their HTML cannot act for a person who uses the studio.',
};

const oauth: Descriptions = {
  '': 'Identity provider whose access tokens are also accepted.',
  issuer: 'Expected `iss` claim.',
  jwksUri: 'URL of the signing keys (JWKS). Must be https, except on this machine.',
  audience: 'Expected `aud` claim.',
  namespaceClaim: 'Claim with the namespace of the caller.',
};

const studio: Descriptions = {
  '': 'The web console.',
  oidc: 'Identity provider (OpenID Connect) with which people sign in; null: none.',
  'oidc.issuer':
    'URL of the provider, whose `/.well-known/openid-configuration` has its endpoints. Must be https, except on this machine.',
  'oidc.clientId': 'Id under which the provider knows the studio.',
  'oidc.clientSecret':
    // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
    'Environment variable with the client secret, such as "${STUDIO_CLIENT_SECRET}"; null: a public client.',
  'oidc.scopes': 'Scopes of the sign-in; "openid" is required.',
  'oidc.roleClaim': 'Top-level claim that decides about roles, a text or a list of texts, such as "groups".',
  'oidc.roles': 'Role by value of that claim.',
  'oidc.roles.*.role': 'Role of people with this value.',
  'oidc.roles.*.namespaceId': 'Namespace of the role; "*": all namespaces.',
};

const model: Descriptions = {
  baseUrl: 'Base URL of an OpenAI-compatible endpoint, up to and including /v1.',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
  apiKey: 'Environment variable with the API key, such as "${OPENAI_API_KEY}"; null: none.',
  timeoutMs: 'Time limit of one attempt; for a stream, between two chunks.',
  maxAttempts: 'Maximum attempts, for transient failures.',
  maxResponseBytes: 'Maximum size of a response.',
  prices: 'Prices by model, for the cost in metrics and events.',
  'prices.*.inputPerMillion': 'US dollars per million input tokens.',
  'prices.*.outputPerMillion': 'US dollars per million output tokens.',
};

const storage: Descriptions = {
  '': 'Backend of `ctx.storage`; null: plugins have no storage.',
  type: '"files": in `.svc/storage`, or with PostgreSQL in the database; "s3": an S3-compatible bucket.',
  maxObjectBytes: 'Largest object.',
  quotaBytes: 'All objects of one plugin and tenant ("files" only).',
  bucket: 'Bucket name.',
  region: 'Region of the bucket.',
  endpoint: 'URL of the service; null: Amazon S3.',
  pathStyle: 'The path names the bucket (MinIO, Ceph).',
  prefix: 'Prefix of every key, for a shared bucket.',
  accessKeyId: 'Environment variable with the access key id; null: the role of the machine.',
  secretAccessKey: 'Environment variable with the secret access key.',
  sessionToken: 'Environment variable with the session token, for temporary credentials.',
  timeoutMs: 'Time limit of one call.',
};

const gateway: Descriptions = {
  '': 'The single entry point.',
  ...listener('GATEWAY'),
  drainDelayMs:
    'Time from 503 of `/ready` to closing the port, for load balancers; null: 5 s with `cluster.enabled`, else 0.',
  publicUrl:
    'Public URL of the gateway and base of webhook URLs; null: http://localhost:<port>. GATEWAY_PUBLIC_URL wins.',
  processes: 'Processes that share the port (Linux).',
  allowedHosts: 'Additional `Host` names accepted by a gateway on loopback.',
  staticTokens: 'Bearer tokens that never expire, by token.',
  'staticTokens.*.hostId': 'Identity of the caller.',
  'staticTokens.*.namespaceId': 'Namespace (tenant) of the caller.',
  admins: 'Host ids whose callers administer the platform.',
  trustedProxies:
    'Addresses or ranges of proxies whose X-Forwarded-* headers count; also "loopback", "linklocal", "uniquelocal".',
  cors: 'Cross-origin calls from browsers.',
  'cors.origins': 'Origins that may call the gateway, such as "https://app.example.com".',
  upstreams: 'Services behind the gateway.',
  'upstreams.rest': 'The REST API.',
  ...under('upstreams.rest', upstream),
  'upstreams.workflow': 'The workflow service.',
  ...under('upstreams.workflow', upstream),
  rateLimit: 'Limits on authenticated calls; null: no limit.',
  'rateLimit.perTokenPerMinute': 'Calls a minute for one token.',
  'rateLimit.perTenantPerMinute': 'Calls a minute for one tenant; `tenants` may set another number.',
  'rateLimit.perIpPerMinute': 'Calls a minute from one address.',
  bodyLimitBytes: 'Largest request body; webhooks declare their own.',
  upstreamTimeoutMs:
    'Time for an upstream to begin its answer; then 504. Longer timeouts of plugin routes win.',
  publicPluginRoutes: 'Plugin routes with "none" in `security` need no token.',
  mcp: 'MCP endpoint `/mcp` for agents.',
  'mcp.enabled': 'Whether the gateway serves `/mcp`.',
  'mcp.callsPerMinute':
    'MCP calls a minute for one caller: tools, prompts of plugins, resources, completions and tasks.',
  'mcp.concurrentCalls': 'MCP calls of one caller at the same time, for each gateway process.',
  ...under('oauth', oauth),
};

const execution: Descriptions = {
  '': 'Where plugin code runs: "worker": sandboxed processes on this machine; "container": Docker or Podman; "host": a registered host.',
  default: 'Backend of plugins not listed in `execution.plugins`.',
  worker: 'Sandboxed processes on this machine.',
  'worker.maxProcesses': 'Maximum processes per plugin, and maximum concurrent scripts (`run`) of workflows.',
  'worker.memoryMb': 'Resident memory above which a process, or a script of a workflow, is killed.',
  'worker.idleMs': 'Idle time before a process is stopped.',
  'worker.sandbox':
    '"bwrap": bubblewrap is required; "permission": only the permission model of Node; "auto": bubblewrap where it works.',
  'worker.isolation': '"plugin": tenants share processes; "tenant": each process serves one tenant.',
  privateHosts:
    'Names (or name:port) with private addresses that ctx.fetch may call, if the manifest lists them too.',
  container: 'Containers of Docker or Podman.',
  'container.socket': 'Unix socket of the container engine.',
  'container.image': 'Image of the plugin runner.',
  'container.network': 'Network of containers whose plugin has permissions.network ["*"]; others have none.',
  'container.memoryMb': 'Memory limit of a container.',
  'container.pidsLimit': 'Limit of processes and threads in a container.',
  'container.requireLimits': 'Refuse containers if the engine cannot enforce these limits.',
  'container.cpus': 'CPUs of a container; null: no limit.',
  'container.maxContainers': 'Maximum concurrent containers.',
  plugins: 'Backend by plugin id.',
  'plugins.*.backend': 'Backend of this plugin.',
  'plugins.*.hostId': 'Host to run on ("host" only). Default: any matching host.',
  'plugins.*.labels': 'Required labels of the host.',
  'plugins.*.capability': 'Required capability of the host.',
};

const workflow: Descriptions = {
  '': 'The workflow service.',
  ...listener('WORKFLOW'),
  maxRunningRuns: 'Runs in memory; one tenant gets at most three quarters.',
  maxRunningSteps: 'Steps in flight; one tenant gets at most three quarters.',
  poisonAfter: 'Crashes without progress after which a run fails as poison.',
  pluginAlertMs: 'Interval of errors in the log while runs wait for an absent plugin.',
  cleanUpTimeoutMs: 'Default time for the clean-up of cancelled or timed-out runs.',
  httpAllow: 'Private hosts that `http` steps may call, such as "10.0.0.5" or "intranet:8080".',
};

const queues: Descriptions = {
  '': 'Settings by queue, for all namespaces. They win over those set by API.',
  '*.maxAttempts': 'Leases after which a failed item becomes dead. Default: 10.',
  '*.concurrency': 'Maximum number of leased items; null: no limit (default).',
  '*.leaseMs': 'Duration of a lease for which the program names none. Default: 30 s.',
  '*.maxLeaseMs': 'Longest lease. Default: 1 h.',
  '*.order':
    'One item at a time and in order: of each order "key" (default), of the whole "queue", or "none".',
};

const retention: Descriptions = {
  '': 'How long records are kept.',
  logsDays: 'Days for log records.',
  analyticsDays: 'Days for analytics events.',
  telemetryMaxBytes: 'Limit for log records and events; the oldest log records go first.',
  deliveriesDays: 'Days for records of webhook deliveries.',
  deliveriesMaxBytes:
    'Limit for deliveries and their text index; the oldest bodies go first, then the oldest records.',
  runsDays: 'Days for finished workflow runs and jobs.',
  messagesDays: 'Days for messages whose deliveries are done, and for their attempts.',
};

/** Description of each key of `svc.config.json`, for editors and docs/configuration.md. */
export const CONFIG_DESCRIPTIONS: Descriptions = {
  $schema: 'JSON Schema of this file, for editors.',
  profiles: 'Keys that a profile merges over the base; --profile, SVC_PROFILE or NODE_ENV selects one.',
  ...under('gateway', gateway),
  rest: 'The REST API.',
  ...under('rest', listener('REST')),
  'rest.timeoutMs': 'Default time limit of plugin routes.',
  ...under('rest.oauth', oauth),
  ...under('workflow', workflow),
  marketplace: 'The service that installs plugins.',
  ...under('marketplace', listener('MARKETPLACE')),
  state: 'The service that stores the state and cache of plugins.',
  ...under('state', listener('STATE')),
  'state.quotas': 'Limits of one plugin and tenant; writes beyond them fail with QUOTA_EXCEEDED.',
  'state.quotas.entries': 'Of `ctx.state`.',
  'state.quotas.entries.maxBytes': 'Size of keys and JSON values.',
  'state.quotas.entries.maxKeys': 'Number of entries.',
  'state.quotas.cache': 'Limits of `ctx.cache`. Expired entries count until they are deleted.',
  'state.quotas.cache.maxBytes': 'Size of keys and JSON values.',
  'state.quotas.cache.maxKeys': 'Number of entries.',
  store: 'The database of the platform.',
  'store.url':
    // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
    '"sqlite:<folder>", relative to the project, or the URL of PostgreSQL. `${NAME}` is a variable.',
  'store.dataDir':
    "Folder for this machine's files with PostgreSQL, relative to the project; null means `.svc`. With SQLite, `store.url` names it.",
  inbox: 'Accepted webhook deliveries.',
  'inbox.whenStoreDown':
    'While PostgreSQL is away: "refuse" async deliveries with 503, or "spill" them to this machine\'s disk.',
  webhooks: 'Deliveries from senders.',
  'webhooks.keepRefused':
    'Stores the requests of deliveries refused with 401 for 24 hours, encrypted, so that they can be replayed.',
  cluster: 'Several nodes on one PostgreSQL database.',
  'cluster.enabled': 'Refuses a start without the settings that nodes share.',
  services: 'Services on other nodes, by name.',
  'services.*.url': 'Address; by default, services of a cluster find each other in PostgreSQL.',
  cache: 'The platform cache.',
  'cache.url':
    '`redis://…` or `rediss://…` of Redis or Valkey, which holds the cache of plugins and rate counters; null means the store does.',
  plugins: "Folders of the project's plugins (globs).",
  workflows: 'Workflow definition files (globs).',
  pluginConfig: 'Settings by plugin id, passed to the plugin as `ctx.config`.',
  ...under('queues', queues),
  ...under('execution', execution),
  tenants: 'Limits by namespace; null: no limit.',
  'tenants.*.requestsPerMinute':
    'Authenticated requests per minute; overrides gateway.rateLimit.perTenantPerMinute.',
  'tenants.*.runsPerDay': 'Runs started per day.',
  'tenants.*.runsPerMonth': 'Runs started per month.',
  'tenants.*.concurrentRuns': 'Maximum unfinished runs.',
  adapters: 'Storage, models and vectors for plugins.',
  ...under('adapters.storage', storage),
  'adapters.llm': 'Language models for `ctx.llm`; null: none.',
  ...under('adapters.llm', model),
  'adapters.llm.models': 'Models by tier: {"default": …, "small": …}. "default" is required.',
  'adapters.llm.maxTokensField':
    'Field for the output limit; newer OpenAI models need max_completion_tokens.',
  'adapters.llm.maxOutputTokens': 'Largest output limit of a call.',
  'adapters.embeddings': 'Embedding model for `ctx.embeddings`; null: none.',
  ...under('adapters.embeddings', model),
  'adapters.embeddings.model': 'Name of the model.',
  'adapters.embeddings.dimensions': "Length of the vectors; null: the model's default.",
  'adapters.vectorStore': 'Vectors for `ctx.vectorStore`; null: none.',
  'adapters.vectorStore.type':
    'Must be "sqlite": exact search with sqlite-vec, also of vectors in PostgreSQL.',
  'adapters.vectorStore.maxVectors': 'Limit per plugin and tenant.',
  ...under('retention', retention),
  outgoing: 'Messages to endpoints (docs/messages.md).',
  'outgoing.allowPrivateAddresses':
    'Whether endpoints may have private addresses, except link-local ones, and any port.',
  'outgoing.allow':
    'Hosts that endpoints may have although their address, port or plain http is refused, such as "10.0.0.5" or "intranet:8080".',
  ...under('sources', SOURCES_DESCRIPTIONS),
  ...under('alerts', ALERTS_DESCRIPTIONS),
  ...under('studio', studio),
  auth: 'Authentication.',
  'auth.mode':
    'Direct calls to services without identity: "optional": answered; "required": refused. Default: "required" in the profile production, else "optional".',
  'auth.staleMs': 'Ms without news of revocations until a node answers 503.',
};
