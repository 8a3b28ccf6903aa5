import type { CommandResult } from './command-result.ts';
import type { HostKind, RestHostContext, ValidatorHostContext, WebhookHostContext } from './execution.ts';
import type { EmbeddingsAccess, LlmAccess, StorageAccess, VectorStoreAccess } from './plugin-adapters.ts';
import type { JobsAccess, WebhooksAccess, WorkflowsAccess } from './plugin-services.ts';

/** Options of a write: milliseconds until the entry disappears. */
export interface EntryOptions {
  ttlMs?: number;
}

/**
 * Values by key, kept by the platform for one plugin and one tenant. Keys are 1 to 512 characters, values
 * anything JSON can carry. Each method is atomic, so racing handlers need no lock.
 * Calls reject with PERMISSION_DENIED when the manifest switches the service off.
 */
export interface KeyValueAccess {
  /** Undefined when there is no such entry. */
  get<Value = unknown>(key: string): Promise<Value | undefined>;
  set(key: string, value: unknown, options?: EntryOptions): Promise<void>;
  /** True when it wrote: of racing callers, one. */
  setIfAbsent(key: string, value: unknown, options?: EntryOptions): Promise<boolean>;
  /** True when there was something to delete. */
  delete(key: string): Promise<boolean>;
  /** Adds `by` (default 1) and returns the new value; with `windowMs` the counter begins anew after the window. */
  increment(key: string, by?: number, options?: { windowMs?: number }): Promise<number>;
  /** Entries by key prefix, in key order; at most 1,000 a page, 100 unless told. */
  list<Value = unknown>(options?: {
    prefix?: string;
    cursor?: string;
    limit?: number;
  }): Promise<{
    items: Array<{ key: string; value: Value; expiresAt: number | null }>;
    nextCursor: string | null;
  }>;
}

/** Log lines of a handler; they carry its plugin, tenant, request and trace by themselves. */
export type PluginLog = Record<
  'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal',
  (message: string, meta?: Record<string, unknown>) => void
>;

/** What an event may be called. */
export const PLUGIN_EVENT_NAME = /^[A-Za-z][\w.:-]{0,127}$/;

/** Events of a plugin's own. @spec Analytics events: plugins may emit custom events with a name and a payload */
export interface PluginAnalytics {
  /**
   * Tells an event; returns at once. It carries the plugin as its source, with tenant and run. `name` is letters,
   * digits and `. _ : -`; the payload is at most 16 KB as JSON; above 100 events a second and plugin they are dropped.
   */
  track(name: string, payload?: unknown): void;
}

/** The authenticated caller behind a call; null when there is none (webhooks, schedules). */
export interface PluginUser {
  hostId: string;
  namespaceId: string;
}

/** What a handler receives beside its input. @spec Versioning (PluginContextV3); docs/plugins.md */
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
  /** Path parameters of a route. */
  readonly params: Readonly<Record<string, string>>;
  /** The plugin's entry under `pluginConfig` of the platform config. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Aborts when the call times out or its caller leaves; the process is ended shortly after. */
  readonly signal: AbortSignal;
  readonly log: PluginLog;
  readonly analytics: PluginAnalytics;
  /** Entries that may be lost: without `ttlMs` they last an hour. */
  readonly cache: KeyValueAccess;
  /** Entries that stay until deleted. */
  readonly state: KeyValueAccess;
  /** Files; `permissions.platform.storage`. */
  readonly storage: StorageAccess;
  /** A language model; `permissions.platform.llm`. */
  readonly llm: LlmAccess;
  /** Texts as vectors; `permissions.platform.embeddings`. */
  readonly embeddings: EmbeddingsAccess;
  /** Vectors, searched by nearness; `permissions.platform.vectorStore`. */
  readonly vectorStore: VectorStoreAccess;
  /** The environment variables that `permissions.env` names and that are set. */
  readonly env: Readonly<Record<string, string>>;
  /** `fetch` through the platform, to hosts that `permissions.network` lists. Bodies are buffered, at most 8 MiB. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Runs another plugin's command, for the same tenant and user, and resolves with its `result`.
   * `command` is `<plugin>/<command>`, which `permissions.invoke` must list (or `<plugin>` for all of it).
   * Rejects with the code and message of what went wrong.
   */
  readonly invoke: <Result = unknown>(command: string, input?: unknown) => Promise<Result>;
  /** Registered workflows and their runs; `permissions.platform.workflows`. */
  readonly workflows: WorkflowsAccess;
  /** Background jobs; `permissions.platform.jobs`. */
  readonly jobs: JobsAccess;
  /** The plugin's own webhooks; `permissions.platform.webhooks`. */
  readonly webhooks: WebhooksAccess;
}

export type WebhookContext = PluginContextV3<WebhookHostContext>;
export type ValidatorContext = PluginContextV3<ValidatorHostContext>;
export type RouteContext = PluginContextV3<RestHostContext>;

/** Which kind of handler a definition makes. */
export type HandlerKind = 'command' | 'route' | 'webhook' | 'job' | 'validator' | 'workflow';

/** The hosts each kind of handler runs under; a plain function runs under any. @spec Plugin routes 7 */
export const HOSTS_OF_KIND: Readonly<Record<HandlerKind, readonly HostKind[]>> = {
  command: ['cli', 'workflow', 'plugin'],
  route: ['rest'],
  webhook: ['webhook'],
  job: ['job'],
  validator: ['validator'],
  workflow: ['workflow'],
};

/** The part of a schema library that the runner uses (Standard Schema v1); zod schemas have it. */
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
 * A handler: a function, or an object with `execute`. What it returns becomes the CommandResult: an object
 * with a numeric `exitCode` is taken as one, anything else is the `result` of a success.
 * @spec Command result; docs/plugins.md "Handlers"
 */
export interface HandlerDefinition<Context = PluginContextV3, Input = unknown, Result = unknown> {
  readonly kind: HandlerKind;
  /** For types alone: the `result` that callers get. Never set. */
  readonly '~result'?: Result;
  /** A route's method: a call by another one fails with HOST_MISMATCH. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Checked unless the manifest names a schema of its own. */
  readonly input?: StandardSchema<Input>;
  readonly output?: StandardSchema;
  execute(ctx: Context, input: Input): unknown;
}

export type HandlerReturn<Result = unknown> = Result | CommandResult<Result>;

/** The `result` of what a handler returned: of a CommandResult its own, anything else itself. */
export type ReturnedResult<Returned> = Returned extends CommandResult<infer Result> ? Result : Returned;
