import { z } from 'zod';
import { AdaptersConfig } from './adapters.ts';
import { AlertChannelName, AlertRuleName, DeclaredAlertChannel, DeclaredAlertRule } from './alert-config.ts';
import { ServiceName } from './common.ts';
import { HostTarget } from './host-target.ts';
import { ChosenHostId, type HostId, NamespaceId, PluginId } from './ids.ts';
import { LIMITS } from './limits.ts';
import { QueueName, QueueSettingsInput } from './queue-settings.ts';
import { DeclaredSource, SourceName } from './source-config.ts';
import { HttpUrl, isTamperProof, StudioOidc } from './studio-config.ts';

const Host = z.string().min(1);
const Port = z.number().int().min(0).max(65535);
const Ms = z.number().int().positive();
const PerMinute = z.number().int().positive().nullable().default(null);

/** The public base URL of the gateway, to which URL paths are appended. @spec Webhook admin API */
export const PublicUrl = HttpUrl.regex(
  /^[^:]+:\/\/[^/?#@]+(?:\/[^?#]*)?$/,
  'must have no credentials, query or fragment, because webhook paths are appended',
);

/** Adds defaults to an absent section: `prefault` applies the defaults of its keys. */
const section = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject(shape).prefault({} as z.input<z.ZodObject<Shape>>);

const MEBIBYTE = 1024 * 1024;

const entryQuota = (maxBytes: number, maxKeys: number) =>
  section({
    maxBytes: z.number().int().positive().default(maxBytes),
    maxKeys: z.number().int().positive().default(maxKeys),
  });

const listener = (port: number) => ({
  host: Host.default('127.0.0.1'),
  port: Port.default(port),
  drainMs: Ms.max(3600_000).default(8000),
});

const upstream = (prefix: string | string[], websocket = false) =>
  section({
    url: HttpUrl.nullable().default(null),
    prefix: z.union([z.string().startsWith('/'), z.array(z.string().startsWith('/'))]).default(prefix),
    websocket: z.boolean().default(websocket),
    sandbox: z.boolean().default(true),
  });

/** Base URL of a service on other nodes, to which the paths of internal calls are appended. */
const ServiceUrl = HttpUrl.regex(
  /^[^:]+:\/\/[^/?#@]+\/?$/,
  'must have no credentials, path, query or fragment, such as http://rest.example:5050',
);

/** Matches control characters except the tab, which HTTP headers may contain. */
const CONTROL = /[^\P{Cc}\t]/u;

/**
 * A bearer token. Only characters that a header can carry are allowed, and whitespace is significant. @spec Static
 * token entry
 */
const StaticToken = z
  .string()
  .min(1)
  .max(LIMITS.tokenChars)
  .refine((token) => token.isWellFormed() && !CONTROL.test(token), {
    error: 'must not contain control characters, which headers cannot carry',
  });

/** A static token and the identity that the token authenticates. @spec Static token entry */
export const StaticTokenEntry = z.strictObject({ hostId: ChosenHostId, namespaceId: NamespaceId });

/**
 * An external issuer of tokens that the gateway accepts. The tokens must be signed with RS256 or ES256. @spec
 * docs/plugins.md "Routes"
 */
export const OAuthIssuer = z.strictObject({
  issuer: HttpUrl,
  jwksUri: HttpUrl.refine(
    isTamperProof,
    'must be https, because these keys can sign any token (http is accepted for loopback only)',
  ),
  audience: z.string().min(1),
  namespaceClaim: z.string().min(1),
});
export type OAuthIssuer = z.infer<typeof OAuthIssuer>;

const ProxyAddress = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), z.enum(['loopback', 'linklocal', 'uniquelocal'])],
  {
    error: 'must be an IP address, a range such as "10.0.0.0/8", or "loopback", "linklocal" or "uniquelocal"',
  },
);

const Gateway = section({
  ...listener(4000),
  drainDelayMs: z.number().int().min(0).max(300_000).nullable().default(null),
  publicUrl: PublicUrl.nullable().default(null),
  processes: z.number().int().min(1).max(64).default(1),
  allowedHosts: z.array(z.string()).default([]),
  staticTokens: z.record(StaticToken, StaticTokenEntry).default({}),
  admins: z.array(ChosenHostId).default(['operator' as HostId]),
  trustedProxies: z.array(ProxyAddress).default([]),
  cors: section({ origins: z.array(z.string()).default([]) }),
  upstreams: section({
    rest: upstream('/api/v1', true),
    workflow: upstream(['/api/v1/workflows', '/workflows']),
  }),
  rateLimit: section({
    perTokenPerMinute: PerMinute,
    perTenantPerMinute: PerMinute,
    perIpPerMinute: PerMinute,
  }),
  bodyLimitBytes: z
    .number()
    .int()
    .positive()
    .default(10 * 1024 * 1024),
  upstreamTimeoutMs: Ms.default(120_000),
  publicPluginRoutes: z.boolean().default(false),
  mcp: section({
    enabled: z.boolean().default(true),
    callsPerMinute: z.number().int().positive().default(600),
    concurrentCalls: z.number().int().min(1).max(1000).default(16),
  }),
  oauth: OAuthIssuer.nullable().default(null),
});

const Execution = section({
  default: z.enum(['worker', 'container', 'host']).default('worker'),
  worker: section({
    maxProcesses: z.number().int().min(1).max(64).default(2),
    memoryMb: z.number().int().min(32).default(256),
    idleMs: Ms.default(60_000),
    sandbox: z.enum(['auto', 'bwrap', 'permission']).default('auto'),
    isolation: z.enum(['plugin', 'tenant']).default('plugin'),
  }),
  container: section({
    socket: z.string().default('/var/run/docker.sock'),
    image: z.string().default('svc-runner'),
    network: z.string().default('bridge'),
    memoryMb: z.number().int().min(64).default(256),
    pidsLimit: z.number().int().min(16).default(128),
    requireLimits: z.boolean().default(true),
    cpus: z.number().positive().nullable().default(null),
    maxContainers: z.number().int().min(1).max(1000).default(8),
  }),
  privateHosts: z.array(z.string().min(1).max(260)).default([]),
  plugins: z
    .record(
      PluginId,
      z.strictObject({
        backend: z.enum(['worker', 'container', 'host']),
        ...HostTarget.shape,
      }),
    )
    .default({}),
});

const Tenant = z.strictObject({
  requestsPerMinute: PerMinute,
  runsPerDay: PerMinute,
  runsPerMonth: PerMinute,
  concurrentRuns: PerMinute,
});

/** The content of `svc.config.json` after the profile is merged. Every key has a default. @spec docs/operations.md */
export const PlatformConfig = z.strictObject({
  $schema: z.string().optional(),
  gateway: Gateway,
  rest: section({
    ...listener(5050),
    timeoutMs: Ms.default(60_000),
    oauth: OAuthIssuer.nullable().default(null),
  }),
  workflow: section({
    ...listener(7778),
    maxRunningRuns: z.number().int().min(1).max(100_000).default(500),
    maxRunningSteps: z.number().int().min(1).max(10_000).default(64),
    poisonAfter: z.number().int().min(1).default(3),
    pluginAlertMs: Ms.default(600_000),
    cleanUpTimeoutMs: Ms.default(60_000),
    httpAllow: z.array(z.string().min(1)).default([]),
  }),
  marketplace: section(listener(5070)),
  state: section({
    ...listener(7777),
    quotas: section({
      entries: entryQuota(64 * MEBIBYTE, 100_000),
      cache: entryQuota(16 * MEBIBYTE, 50_000),
    }),
  }),
  store: section({
    url: z
      .string()
      .regex(
        /^(?:sqlite:.|postgres(?:ql)?:\/\/.|\$\{[A-Za-z_]\w*\}$)/,
        'must be "sqlite:<folder>", "postgres://<user>:<password>@<host>/<database>" or a variable with such a URL',
      )
      .default('sqlite:.svc'),
    dataDir: z.string().min(1).nullable().default(null),
  }),
  inbox: section({ whenStoreDown: z.enum(['refuse', 'spill']).default('refuse') }),
  webhooks: section({ keepRefused: z.boolean().default(true) }),
  cluster: section({ enabled: z.boolean().default(false) }),
  /** Addresses of services that other nodes run. */
  services: z.partialRecord(ServiceName, z.strictObject({ url: ServiceUrl })).default({}),
  cache: section({
    url: z
      .string()
      .regex(
        /^(?:rediss?:\/\/.|\$\{[A-Za-z_]\w*\}$)/,
        'must be "redis://<user>:<password>@<host>", "rediss://…" for TLS, a variable with such a URL, or null',
      )
      .nullable()
      .default(null),
  }),
  plugins: z.array(z.string()).default(['./plugins/*']),
  workflows: z.array(z.string()).default(['./workflows/*.{yaml,yml}']),
  /** Settings by plugin id, passed to the plugin as `ctx.config`. */
  pluginConfig: z.record(z.string(), z.record(z.string(), z.unknown())).default({}),
  queues: z.record(QueueName, QueueSettingsInput).default({}),
  execution: Execution,
  tenants: z.record(NamespaceId, Tenant.partial()).default({}),
  adapters: AdaptersConfig.prefault({}),
  retention: section({
    logsDays: z.number().positive().default(7),
    analyticsDays: z.number().positive().default(400),
    telemetryMaxBytes: z
      .number()
      .int()
      .positive()
      .default(2 * 1024 ** 3),
    deliveriesDays: z.number().positive().default(7),
    deliveriesMaxBytes: z
      .number()
      .int()
      .positive()
      .default(1024 ** 3),
    runsDays: z.number().positive().default(30),
    messagesDays: z.number().positive().default(7),
  }),
  outgoing: section({
    allowPrivateAddresses: z.boolean().default(false),
    allow: z.array(z.string().min(1)).default([]),
  }),
  sources: section({
    forwardAllow: z.array(z.string().min(1)).default([]),
    declared: z.record(NamespaceId, z.record(SourceName, DeclaredSource)).default({}),
  }),
  alerts: section({
    rules: z.record(AlertRuleName, DeclaredAlertRule).default({}),
    channels: z.record(AlertChannelName, DeclaredAlertChannel).default({}),
    intervalMs: z.number().int().min(100).max(600_000).default(2000),
    retentionDays: z.number().positive().default(90),
  }),
  studio: section({ oidc: StudioOidc.nullable().default(null) }),
  auth: section({
    mode: z.enum(['optional', 'required']).optional(),
    staleMs: z.number().int().min(1000).default(30_000),
  }),
});
export type PlatformConfig = z.infer<typeof PlatformConfig>;

/** Key of the config file under which the profiles and their overrides are listed. */
export const PROFILES_KEY = 'profiles';
