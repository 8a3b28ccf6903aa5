import type { CommandResult } from './command-result.ts';
import type { HostKind, RestHostContext, ValidatorHostContext, WebhookHostContext } from './execution.ts';
import type { EmbeddingsAccess, LlmAccess, StorageAccess, VectorStoreAccess } from './plugin-adapters.ts';
import type {
  ConnectionsAccess,
  Emit,
  JobsAccess,
  SecretsAccess,
  WebhooksAccess,
  WorkflowsAccess,
} from './plugin-services.ts';

/** Options for writing an entry. `ttlMs` is the time until the entry expires, in ms. */
export interface EntryOptions {
  ttlMs?: number;
}

/**
 * Key-value entries of one plugin and one tenant. Keys have 1 to 512 characters, and values are JSON. Each method is
 * atomic. Throws PERMISSION_DENIED if `permissions.platform` disables the service.
 */
export interface KeyValueAccess {
  /** Returns the value of an entry, or undefined if the entry does not exist. */
  get<Value = unknown>(key: string): Promise<Value | undefined>;
  set(key: string, value: unknown, options?: EntryOptions): Promise<void>;
  /**
   * Writes the entry unless the key already exists. Resolves to true if this call wrote the entry. Of several
   * concurrent calls, only one call writes the entry.
   */
  setIfAbsent(key: string, value: unknown, options?: EntryOptions): Promise<boolean>;
  /** Deletes an entry. Resolves to true if the entry existed. */
  delete(key: string): Promise<boolean>;
  /**
   * Adds `by` (default 1) to a counter and returns the new value. With `windowMs`, the counter restarts from 0 when
   * this time has passed since the first increment.
   */
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

/** Logger of a handler. Each log line includes the plugin, tenant, request and trace. */
export type PluginLog = Record<
  'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal',
  (message: string, meta?: Record<string, unknown>) => void
>;

export const PLUGIN_EVENT_NAME = /^[A-Za-z][\w.:-]{0,127}$/;

/**
 * Custom analytics events of a plugin. @spec Analytics events: plugins may emit custom events with a name and a payload
 */
export interface PluginAnalytics {
  /**
   * Emits an event and returns immediately. `name` starts with a letter, followed by letters, digits and `. _ : -`.
   * `payload` has at most 16 KB of JSON. Events above 100 per second for one plugin are dropped.
   */
  track(name: string, payload?: unknown): void;
}

/** The authenticated caller. `ctx.user` is null for webhooks and schedules, because these have no caller. */
export interface PluginUser {
  hostId: string;
  namespaceId: string;
}

/** Context that a handler receives in addition to its input. @spec Versioning (PluginContextV3); docs/plugins.md */
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
  /** Settings of the plugin, taken from its entry in `pluginConfig` of the platform config. */
  readonly config: Readonly<Record<string, unknown>>;
  /**
   * Aborts when the call times out or the caller disconnects. If the handler is still running shortly afterwards, the
   * platform kills its process.
   */
  readonly signal: AbortSignal;
  readonly log: PluginLog;
  readonly analytics: PluginAnalytics;
  /**
   * Reports progress to the caller, if it listens, as MCP clients can. `done` must increase; `total` has the same unit.
   */
  readonly progress: (done: number, total?: number, message?: string) => void;
  /** Volatile key-value entries with a default TTL of one hour. */
  readonly cache: KeyValueAccess;
  /** Durable key-value entries, which expire only if a TTL is set. */
  readonly state: KeyValueAccess;
  /** Access to object storage. Requires `permissions.platform.storage`. */
  readonly storage: StorageAccess;
  /** Access to language models. Requires `permissions.platform.llm`. */
  readonly llm: LlmAccess;
  /** Access to text embeddings. Requires `permissions.platform.embeddings`. */
  readonly embeddings: EmbeddingsAccess;
  /** Access to similarity search over vectors. Requires `permissions.platform.vectorStore`. */
  readonly vectorStore: VectorStoreAccess;
  /** Values of the environment variables that `permissions.env` lists. Unset variables are omitted. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Sends HTTP requests through the platform to the hosts that `permissions.network` lists. Bodies are buffered and
   * limited to 8 MiB.
   */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Runs a command of another plugin for the same tenant and user. Resolves with the command's `result`, or rejects
   * with its error. `permissions.invoke` must list `<plugin>/<command>`, or `<plugin>` for all commands.
   */
  readonly invoke: <Result = unknown>(command: string, input?: unknown) => Promise<Result>;
  /** Access to registered workflows and their runs. Requires `permissions.platform.workflows`. */
  readonly workflows: WorkflowsAccess;
  /** Access to background jobs. Requires `permissions.platform.jobs`. */
  readonly jobs: JobsAccess;
  /** Access to the plugin's own webhooks. Requires `permissions.platform.webhooks`. */
  readonly webhooks: WebhooksAccess;
  /** Emits a message to the endpoints of the tenant. Requires `permissions.platform.emit`. */
  readonly emit: Emit;
  /** Access to the tenant's secrets that `permissions.secrets` lists. */
  readonly secrets: SecretsAccess;
  /** Access to the tenant's OAuth 2 connections that `permissions.connections` lists. */
  readonly connections: ConnectionsAccess;
}

export type WebhookContext = PluginContextV3<WebhookHostContext>;
export type ValidatorContext = PluginContextV3<ValidatorHostContext>;
export type RouteContext = PluginContextV3<RestHostContext>;

export type HandlerKind = 'command' | 'route' | 'webhook' | 'job' | 'validator' | 'workflow';

/**
 * Host kinds under which each handler kind is allowed to run. A host kind is the origin of the call, such as `cli` or
 * `rest`. Plain functions can run under every host kind. @spec Plugin routes 7
 */
export const HOSTS_OF_KIND: Readonly<Record<HandlerKind, readonly HostKind[]>> = {
  command: ['cli', 'workflow', 'plugin'],
  route: ['rest'],
  webhook: ['webhook'],
  job: ['job'],
  validator: ['validator'],
  workflow: ['workflow'],
};

/** Subset of Standard Schema v1 that the runner uses. Zod schemas implement this interface. */
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
 * Handler with an `execute` function. A returned object with a numeric `exitCode` becomes the CommandResult. Any other
 * return value becomes the `result` of a successful CommandResult. @spec Command result; docs/plugins.md "Handlers"
 */
export interface HandlerDefinition<Context = PluginContextV3, Input = unknown, Result = unknown> {
  readonly kind: HandlerKind;
  /** Phantom property for inferring the type of `result` in callers. The property is never set at run time. */
  readonly '~result'?: Result;
  /** HTTP method of a route. A call with a different method fails with HOST_MISMATCH. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Input schema defined in code. An input schema in the manifest takes precedence. */
  readonly input?: StandardSchema<Input>;
  readonly output?: StandardSchema;
  execute(ctx: Context, input: Input): unknown;
}

export type HandlerReturn<Result = unknown> = Result | CommandResult<Result>;

/** Extracts the type of `result` from the return type of a handler. */
export type ReturnedResult<Returned> = Returned extends CommandResult<infer Result> ? Result : Returned;
