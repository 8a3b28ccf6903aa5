// Types of `ctx.workflows`, `ctx.jobs` and `ctx.webhooks`. @spec docs/plugins.md "Workflows, jobs and webhooks"
import type { z } from 'zod';
import type { Job } from './jobs.ts';
import type { RetryPolicy } from './workflow-definition.ts';
import type { RunStatus, WorkflowRun } from './workflow-records.ts';

/** Options for starting a run or job. */
export interface StartOptions {
  /**
   * Starts at most once per key. A repeated call returns the run or job that the first call started, and rejects with
   * CONFLICT if the input differs. Keys have at most 256 characters and are scoped to the plugin, the tenant, and the
   * workflow or job.
   */
  idempotencyKey?: string;
  /** Priority from -100 to 100; higher priorities start first. The default is 0. */
  priority?: number;
  /** Earliest start time, in epoch milliseconds or as an ISO 8601 date and time with `Z` or an offset. */
  runAt?: number | string;
}

/** A workflow run as it is returned to handlers. */
export type PluginRun = Omit<WorkflowRun, 'id'> & { id: string };
/** A job as it is returned to handlers. */
export type PluginJob = Omit<Job, 'id'> & { id: string };

export interface ServicePage<Item> {
  items: Item[];
  /** Cursor of the next page. It is null on the last page. */
  nextCursor: string | null;
}

/** Tells whether this call cancelled the run or job. Finished runs and jobs keep their status. */
export interface Cancelled {
  cancelled: boolean;
  status: RunStatus;
}

/**
 * Registered workflows and their runs, for the tenant of the call. Calls reject with PERMISSION_DENIED,
 * WORKFLOW_NOT_FOUND, WORKFLOW_RUN_NOT_FOUND, WORKFLOW_ALREADY_CANCELLED, VALIDATION_ERROR (invalid input), CONFLICT,
 * QUOTA_EXCEEDED or CONCURRENT_LIMIT_EXCEEDED.
 */
export interface WorkflowsAccess {
  /** Resolves once the run is stored, before it finishes. */
  start(workflowId: string, input?: unknown, options?: StartOptions): Promise<PluginRun>;
  get(runId: string): Promise<PluginRun>;
  /** Returns runs, newest first. A page contains 50 runs by default, and at most 1,000. */
  list(options?: {
    workflowId?: string;
    status?: RunStatus;
    cursor?: string;
    limit?: number;
  }): Promise<ServicePage<PluginRun>>;
  cancel(runId: string): Promise<Cancelled>;
  /** Signals are stored until a step waits for them. The same key sends a signal only once per run. */
  signal(
    runId: string,
    name: string,
    payload?: unknown,
    options?: { idempotencyKey?: string },
  ): Promise<void>;
}

/** Options of a job. `retry` has the format of workflows; by default a job has a single attempt. */
export interface JobOptions extends StartOptions {
  retry?: z.input<typeof RetryPolicy>;
  timeoutMs?: number;
}

/**
 * Background jobs of the call's tenant and user: the plugin's own jobs (`sync`), and those of other plugins that
 * `permissions.invoke` lists (`@acme/mail/send`). Calls reject with JOB_NOT_FOUND for an unknown handler or job, and
 * with PERMISSION_DENIED, VALIDATION_ERROR, CONFLICT, QUOTA_EXCEEDED or CONCURRENT_LIMIT_EXCEEDED.
 */
export interface JobsAccess {
  /** Resolves once the job is stored. */
  submit(job: string, input?: unknown, options?: JobOptions): Promise<PluginJob>;
  get(jobId: string): Promise<PluginJob>;
  cancel(jobId: string): Promise<Cancelled>;
}

/** A webhook of the plugin in the tenant's namespace, without its secret. */
export interface PluginWebhook {
  event: string;
  multi: boolean;
  /** Type of authentication that senders must use. */
  auth: string;
  paused: boolean;
  /** Whether a secret exists, so that deliveries are accepted. */
  provisioned: boolean;
  /** URL for deliveries. Each instance of a `multi` webhook has its own URL. */
  url: string;
  instances: Array<{ instanceId: string; provisioned: boolean; url: string }>;
}

/** The plugin's own webhooks. Calls reject with PERMISSION_DENIED or UPSTREAM_UNAVAILABLE. */
export interface WebhooksAccess {
  list(): Promise<PluginWebhook[]>;
}
