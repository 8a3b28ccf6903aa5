// Types of `ctx.workflows`, `ctx.jobs`, `ctx.webhooks`, `ctx.emit`, `ctx.secrets` and `ctx.connections`. @spec docs/plugins.md "Workflows, jobs and webhooks"
import type { z } from 'zod';
import type { Job } from './jobs.ts';
import type { RetryPolicy } from './retry-policy.ts';
import type { RunStatus, WorkflowRun } from './workflow-records.ts';

/** Options for starting a workflow run or a job. */
export interface StartOptions {
  /**
   * Key that prevents duplicate starts. A repeated call returns the existing run or job, or rejects with CONFLICT if
   * the input differs. Keys have at most 256 characters. Each plugin, tenant, workflow and job has separate keys.
   */
  idempotencyKey?: string;
  /** Priority from -100 to 100, default 0. Runs and jobs with a higher priority start first. */
  priority?: number;
  /** Earliest start time, in epoch milliseconds or as an ISO 8601 date and time with `Z` or an offset. */
  runAt?: number | string;
}

/** Workflow run as returned to plugin handlers, with an unbranded `id`. */
export type PluginRun = Omit<WorkflowRun, 'id'> & { id: string };
/** Job as returned to plugin handlers, with an unbranded `id`. */
export type PluginJob = Omit<Job, 'id'> & { id: string };

export interface ServicePage<Item> {
  items: Item[];
  /** Cursor of the next page, or null on the last page. */
  nextCursor: string | null;
}

/**
 * Result of a cancellation. If the run or job has already finished, `cancelled` is false and the status does not
 * change.
 */
export interface Cancelled {
  cancelled: boolean;
  status: RunStatus;
}

/**
 * Access to registered workflows and to the tenant's runs. Throws PERMISSION_DENIED if the plugin lacks the permission.
 * Throws WORKFLOW_NOT_FOUND or WORKFLOW_RUN_NOT_FOUND if the id is unknown. docs/errors.md describes further errors.
 */
export interface WorkflowsAccess {
  /** Resolves once the run is stored, without waiting for the run to finish. */
  start(workflowId: string, input?: unknown, options?: StartOptions): Promise<PluginRun>;
  get(runId: string): Promise<PluginRun>;
  /** Returns runs, newest first. A page contains 50 runs by default, and at most 1,000. */
  list(options?: {
    workflowId?: string;
    status?: RunStatus | RunStatus[];
    cursor?: string;
    limit?: number;
  }): Promise<ServicePage<PluginRun>>;
  cancel(runId: string): Promise<Cancelled>;
  /**
   * Sends a signal, which is stored until a step waits for this signal. Within a run, calls with the same
   * `idempotencyKey` send the signal only once.
   */
  signal(
    runId: string,
    name: string,
    payload?: unknown,
    options?: { idempotencyKey?: string },
  ): Promise<void>;
}

/**
 * Options for submitting a job. `retry` is a retry policy as in workflows. Without `retry`, a job has a single attempt.
 */
export interface JobOptions extends StartOptions {
  retry?: z.input<typeof RetryPolicy>;
  timeoutMs?: number;
}

/**
 * Access to background jobs for the tenant and user of the call. A name such as `sync` refers to a job of this plugin.
 * A name such as `@acme/mail/send` refers to a job of another plugin, which `permissions.invoke` must list. Throws
 * JOB_NOT_FOUND if the handler or job is unknown.
 */
export interface JobsAccess {
  /** Resolves once the job is stored, without waiting for the job to finish. */
  submit(job: string, input?: unknown, options?: JobOptions): Promise<PluginJob>;
  get(jobId: string): Promise<PluginJob>;
  cancel(jobId: string): Promise<Cancelled>;
}

/** A webhook of the plugin in the tenant's namespace, without its secret. */
export interface PluginWebhook {
  event: string;
  multi: boolean;
  /** Authentication type of the webhook, such as `hmac`. */
  auth: string;
  paused: boolean;
  /** Whether the webhook has a secret. Deliveries are rejected until a secret exists. */
  provisioned: boolean;
  /** URL for deliveries. Each instance of a `multi` webhook has its own URL. */
  url: string;
  instances: Array<{ instanceId: string; provisioned: boolean; url: string }>;
}

/** Access to the plugin's own webhooks. Calls reject with PERMISSION_DENIED or UPSTREAM_UNAVAILABLE. */
export interface WebhooksAccess {
  list(): Promise<PluginWebhook[]>;
}

/** Options of `ctx.emit`. */
export interface EmitOptions {
  /**
   * Key that prevents duplicate messages. A repeated call with the key stores nothing. Keys have at most 256
   * characters. Each plugin, tenant and event type has separate keys. In steps of workflows and in jobs, the default
   * identifies the call within the step, so that a retry of the step emits nothing twice.
   */
  idempotencyKey?: string;
  /** Customer of your product, whose endpoints alone receive the message. */
  application?: string;
}

export interface EmittedMessage {
  id: string;
  /** Whether an earlier call with the same idempotency key has stored the message. */
  duplicate: boolean;
}

/**
 * Stores a message for the endpoints of the tenant. Resolves once the message is durable, before it is delivered. The
 * manifest must declare the type in `events`. Rejects with PERMISSION_DENIED or VALIDATION_ERROR.
 */
export type Emit = (type: string, data: unknown, options?: EmitOptions) => Promise<EmittedMessage>;

/**
 * `ctx.emit` for the event types of one plugin. `Events` maps each type to its data, or to its schema:
 * `const emit: EmitOf<{ 'order.paid': Order }> = ctx.emit`.
 */
export type EmitOf<Events extends Record<string, unknown>> = <Type extends keyof Events & string>(
  type: Type,
  data: EventData<Events[Type]>,
  options?: EmitOptions,
) => Promise<EmittedMessage>;

/** The type that a schema accepts, or the type itself. */
type EventData<Declared> = Declared extends {
  readonly '~standard': { readonly types?: { readonly input: infer Data } | undefined };
}
  ? Data
  : Declared;

/**
 * Access to the tenant's secrets. Calls reject with PERMISSION_DENIED (`permissions.secrets` does not list the name),
 * NOT_FOUND (the tenant has no such secret) or UPSTREAM_UNAVAILABLE.
 */
export interface SecretsAccess {
  /** Returns the newest value. Results, errors and log lines of the handler show it as `[redacted]`. */
  get(name: string): Promise<string>;
}

/**
 * Access to the tenant's OAuth 2 connections. Calls reject with PERMISSION_DENIED (`permissions.connections` does not
 * list the name), NOT_FOUND, CONNECTION_NOT_AUTHORIZED (a person must authorize it), CONNECTION_UNAVAILABLE (the provider
 * does not refresh the token at the moment) or UPSTREAM_UNAVAILABLE.
 */
export interface ConnectionsAccess {
  /**
   * Returns an access token that is valid for at least a minute, if its lifetime allows. Get it for each use instead of
   * keeping it: the platform refreshes it. Results, errors and log lines of the handler show it as `[redacted]`.
   */
  token(name: string): Promise<string>;
  /**
   * Sends a request with `ctx.fetch` and the access token as bearer token. `permissions.network` must list the host.
   * Redirects to other origins do not get the token.
   */
  fetch(name: string, ...request: Parameters<typeof globalThis.fetch>): Promise<Response>;
}
