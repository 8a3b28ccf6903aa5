import type { CommandResult } from './command-result.ts';
import type { HostKind, RestHostContext, ValidatorHostContext, WebhookHostContext } from './execution.ts';
import type { EmbeddingsAccess, LlmAccess, StorageAccess, VectorStoreAccess } from './plugin-adapters.ts';
import type { JobsAccess, WebhooksAccess, WorkflowsAccess } from './plugin-services.ts';

/** Options of a write. `ttlMs` is the time in ms until the entry expires. */
export interface EntryOptions {
  ttlMs?: number;
}

/**
 * Key-value entries, separate for each plugin and tenant. Keys have 1 to 512 characters. Values are any JSON. Each
 * method is atomic, so concurrent handlers need no lock. Calls reject with PERMISSION_DENIED if the manifest disables
 * the service.
 */
export interface KeyValueAccess {
  /** Returns the value of an entry, or undefined if the entry does not exist. */
  get<Value = unknown>(key: string): Promise<Value | undefined>;
  set(key: string, value: unknown, options?: EntryOptions): Promise<void>;
  /** Resolves to true if this call wrote the entry. Of concurrent callers, exactly one succeeds. */
  setIfAbsent(key: string, value: unknown, options?: EntryOptions): Promise<boolean>;
  /** Resolves to true if an entry was deleted. */
  delete(key: string): Promise<boolean>;
  /** Adds `by` (default 1) and returns the new value. With `windowMs` the counter restarts after the window. */
  increment(key: string, by?: number, options?: { windowMs?: number }): Promise<number>;
  /**
   * Returns entries by key prefix, in the order of their keys. A page contains 100 entries by default, and at most
   * 1,000.
   */
  list<Value = unknown>(options?: {
    prefix?: string;
    cursor?: string;
    limit?: number;
  }): Promise<{
    items: Array<{ key: string; value: Value; expiresAt: number | null }>;
    nextCursor: string | null;
  }>;
}

/** Logger of a handler. Its lines include the plugin, tenant, request and trace. */
export type PluginLog = Record<
  'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal',
  (message: string, meta?: Record<string, unknown>) => void
>;

/** Matches valid names of analytics events. */
export const PLUGIN_EVENT_NAME = /^[A-Za-z][\w.:-]{0,127}$/;

/**
 * Custom analytics events of a plugin. @spec Analytics events: plugins may emit custom events with a name and a payload
 */
export interface PluginAnalytics {
  /**
   * Emits an event and returns immediately. The platform adds source, tenant and run. `name` consists of letters,
   * digits and `. _ : -`. The payload has at most 16 KB as JSON. Events above 100 per second and plugin are dropped.
   */
  track(name: string, payload?: unknown): void;
}

/** The authenticated caller. It is null for webhooks and schedules, which have no caller. */
export interface PluginUser {
  hostId: string;
  namespaceId: string;
}

/** Context passed to a handler with its input. @spec Versioning (PluginContextV3); docs/plugins.md */
export interface PluginContextV3<HostContext = Record<string, unknown>> {
  readonly host: HostKind;
  readonly hostContext: HostContext;
  readonly requestId: string;
  readonly traceId: string;
  readonly executionId: string;
  readonly pluginId: string;
  readonly pluginVersion: string;
  readonly tenantId: string;
  readonly user: PluginUser | null;
  /** Path parameters of the requested route. */
  readonly params: Readonly<Record<string, string>>;
  /** The plugin's entry in `pluginConfig` of the platform config. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Aborts when the call times out or its caller disconnects; the process is killed shortly after. */
  readonly signal: AbortSignal;
  readonly log: PluginLog;
  readonly analytics: PluginAnalytics;
  /** Volatile entries. Their default TTL is one hour. */
  readonly cache: KeyValueAccess;
  /** Durable entries, which expire only if a TTL is set. */
  readonly state: KeyValueAccess;
  /** Object storage. It requires `permissions.platform.storage`. */
  readonly storage: StorageAccess;
  /** Language models. They require `permissions.platform.llm`. */
  readonly llm: LlmAccess;
  /** Text embeddings. They require `permissions.platform.embeddings`. */
  readonly embeddings: EmbeddingsAccess;
  /** Similarity search over vectors. It requires `permissions.platform.vectorStore`. */
  readonly vectorStore: VectorStoreAccess;
  /** Environment variables that `permissions.env` lists. Variables that are not set are absent. */
  readonly env: Readonly<Record<string, string>>;
  /** `fetch` through the platform, to hosts that `permissions.network` lists. Bodies are buffered, up to 8 MiB. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Runs another plugin's command for the same tenant and user, and resolves with its `result`. `command` is
   * `<plugin>/<command>`; `permissions.invoke` must list it, or `<plugin>` for all commands. Rejects with the command's
   * error.
   */
  readonly invoke: <Result = unknown>(command: string, input?: unknown) => Promise<Result>;
  /** Registered workflows and their runs. They require `permissions.platform.workflows`. */
  readonly workflows: WorkflowsAccess;
  /** Background jobs. They require `permissions.platform.jobs`. */
  readonly jobs: JobsAccess;
  /** The plugin's own webhooks. They require `permissions.platform.webhooks`. */
  readonly webhooks: WebhooksAccess;
}

export type WebhookContext = PluginContextV3<WebhookHostContext>;
export type ValidatorContext = PluginContextV3<ValidatorHostContext>;
export type RouteContext = PluginContextV3<RestHostContext>;

/** Kind of handler that a definition creates. */
export type HandlerKind = 'command' | 'route' | 'webhook' | 'job' | 'validator' | 'workflow';

/**
 * The host kinds under which each handler kind may run. Plain functions may run under any host kind. @spec Plugin
 * routes 7
 */
export const HOSTS_OF_KIND: Readonly<Record<HandlerKind, readonly HostKind[]>> = {
  command: ['cli', 'workflow', 'plugin'],
  route: ['rest'],
  webhook: ['webhook'],
  job: ['job'],
  validator: ['validator'],
  workflow: ['workflow'],
};

/** The subset of Standard Schema v1 used by the runner; zod schemas implement it. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: ReadonlyArray<{
        readonly message: string;
        readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
      }>;
    };

/**
 * A handler: a function, or an object with the function `execute`. An object with a numeric `exitCode` is returned as
 * the CommandResult. Any other return value becomes the `result` of a success. @spec Command result; docs/plugins.md
 * "Handlers"
 */
export interface HandlerDefinition<Context = PluginContextV3, Input = unknown, Result = unknown> {
  readonly kind: HandlerKind;
  /** Phantom property that infers the type of `result` for callers. It is never set. */
  readonly '~result'?: Result;
  /** HTTP method of a route. A call with another method fails with HOST_MISMATCH. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Input schema in code. It is used unless the manifest declares a schema. */
  readonly input?: StandardSchema<Input>;
  readonly output?: StandardSchema;
  execute(ctx: Context, input: Input): unknown;
}

export type HandlerReturn<Result = unknown> = Result | CommandResult<Result>;

/** The `result` type of a handler's return type. */
export type ReturnedResult<Returned> = Returned extends CommandResult<infer Result> ? Result : Returned;
