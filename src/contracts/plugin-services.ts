/** What handlers find as `ctx.workflows`, `ctx.jobs` and `ctx.webhooks`. @spec docs/plugins.md "Workflows, jobs and webhooks" */
import type { z } from 'zod';
import type { Job } from './jobs.ts';
import type { RetryPolicy } from './workflow-definition.ts';
import type { RunStatus, WorkflowRun } from './workflow-records.ts';

/** How something is started. */
export interface StartOptions {
  /**
   * What starts once: a second call with the key answers what the first one started, and rejects with CONFLICT when its
   * input is another. The key belongs to the plugin, the tenant and the workflow or job; at most 256 characters.
   */
  idempotencyKey?: string;
  /** -100 to 100; higher ones go first. Default 0. */
  priority?: number;
  /** Not before: epoch milliseconds, or an ISO 8601 date and time with `Z` or an offset. */
  runAt?: number | string;
}

/** A run as handlers see it. */
export type PluginRun = Omit<WorkflowRun, 'id'> & { id: string };
/** A job as handlers see it. */
export type PluginJob = Omit<Job, 'id'> & { id: string };

export interface ServicePage<Item> {
  items: Item[];
  /** For the next call; null on the last page. */
  nextCursor: string | null;
}

/** Whether this call cancelled it; what had ended keeps its status. */
export interface Cancelled {
  cancelled: boolean;
  status: RunStatus;
}

/**
 * The registered workflows of the platform and their runs, for the tenant of the call. Calls reject with PERMISSION_DENIED,
 * and with the codes of the workflow service: WORKFLOW_NOT_FOUND, WORKFLOW_RUN_NOT_FOUND, WORKFLOW_ALREADY_CANCELLED,
 * VALIDATION_ERROR (an input that the workflow refuses), CONFLICT, QUOTA_EXCEEDED, CONCURRENT_LIMIT_EXCEEDED.
 */
export interface WorkflowsAccess {
  /** Resolves when the run is on disk; it goes on by itself. */
  start(workflowId: string, input?: unknown, options?: StartOptions): Promise<PluginRun>;
  get(runId: string): Promise<PluginRun>;
  /** Newest first; 50 unless told, at most 1,000. */
  list(options?: {
    workflowId?: string;
    status?: RunStatus;
    cursor?: string;
    limit?: number;
  }): Promise<ServicePage<PluginRun>>;
  cancel(runId: string): Promise<Cancelled>;
  /** A signal that comes before a step waits for it is kept until one does. The same key sends one signal to the run. */
  signal(
    runId: string,
    name: string,
    payload?: unknown,
    options?: { idempotencyKey?: string },
  ): Promise<void>;
}

/** `retry` as in workflows; without it a job is tried once. */
export interface JobOptions extends StartOptions {
  retry?: z.input<typeof RetryPolicy>;
  timeoutMs?: number;
}

/**
 * Background jobs, for the tenant and user of the call: the plugin's own (`sync`), and those of others that
 * `permissions.invoke` lists (`@acme/mail/send`). Rejects with PERMISSION_DENIED, JOB_NOT_FOUND (no such
 * handler or job), VALIDATION_ERROR, CONFLICT, QUOTA_EXCEEDED, CONCURRENT_LIMIT_EXCEEDED.
 */
export interface JobsAccess {
  /** Resolves when the job is on disk. */
  submit(job: string, input?: unknown, options?: JobOptions): Promise<PluginJob>;
  get(jobId: string): Promise<PluginJob>;
  cancel(jobId: string): Promise<Cancelled>;
}

/** One webhook of the plugin, as provisioned in the tenant's namespace; never its secret. */
export interface PluginWebhook {
  event: string;
  multi: boolean;
  /** How its senders are checked. */
  auth: string;
  paused: boolean;
  /** Whether there is a secret, so that deliveries can be let in. */
  provisioned: boolean;
  /** Where senders deliver to; of a `multi` webhook each instance has its own. */
  url: string;
  instances: Array<{ instanceId: string; provisioned: boolean; url: string }>;
}

/** The plugin's own webhooks. Rejects with PERMISSION_DENIED and UPSTREAM_UNAVAILABLE. */
export interface WebhooksAccess {
  list(): Promise<PluginWebhook[]>;
}
