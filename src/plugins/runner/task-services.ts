import type {
  ConnectionsAccess,
  Emit,
  JobsAccess,
  PluginContextV3,
  SecretsAccess,
  WebhooksAccess,
  WorkflowsAccess,
} from '../../contracts/index.ts';
import type { PlatformCalls } from './platform-calls.ts';

/**
 * Implements `ctx.workflows`, `ctx.jobs`, `ctx.webhooks` and `ctx.secrets`. Each method sends the call of the same name
 * to the platform.
 */
export function taskServices(
  calls: PlatformCalls,
  executionId: string,
): Pick<PluginContextV3, 'workflows' | 'jobs' | 'webhooks' | 'secrets'> {
  const call = (service: string, method: string, ...args: unknown[]) =>
    calls.call(executionId, service, method, args) as Promise<never>;
  const workflows: WorkflowsAccess = {
    start: (workflowId, input, options) => call('workflows', 'start', workflowId, input, options),
    get: (runId) => call('workflows', 'get', runId),
    list: (options) => call('workflows', 'list', options),
    cancel: (runId) => call('workflows', 'cancel', runId),
    signal: (runId, name, payload) => call('workflows', 'signal', runId, name, payload),
  };
  const jobs: JobsAccess = {
    submit: (job, input, options) => call('jobs', 'submit', job, input, options),
    get: (jobId) => call('jobs', 'get', jobId),
    cancel: (jobId) => call('jobs', 'cancel', jobId),
  };
  const webhooks: WebhooksAccess = { list: () => call('webhooks', 'list') };
  const secrets: SecretsAccess = { get: (name) => call('secrets', 'get', name) };
  return { workflows, jobs, webhooks, secrets };
}

/**
 * Implements `ctx.emit`. `placeOf` returns the place of the call within the execution, from which the platform derives
 * the idempotency key of steps. By default, it is the number of the call.
 */
export function emitter(
  calls: PlatformCalls,
  executionId: string,
  placeOf: () => string = countCalls(),
): Emit {
  return async (type, data, options) => {
    if (data === undefined || typeof data === 'function' || typeof data === 'symbol')
      throw new TypeError(`ctx.emit(${JSON.stringify(type)}): the data must be JSON, not ${typeof data}.`);
    return calls.call(executionId, 'emit', 'emit', [type, data, options, placeOf()]) as Promise<never>;
  };
}

/** Implements `ctx.connections`. */
export function connections(
  calls: PlatformCalls,
  executionId: string,
  fetch: typeof globalThis.fetch,
): ConnectionsAccess {
  const token = (name: string) => calls.call(executionId, 'connections', 'token', [name]) as Promise<string>;
  return {
    token,
    async fetch(name, input, init) {
      const request = new Request(input, init);
      request.headers.set('authorization', `Bearer ${await token(name)}`);
      return fetch(request);
    },
  };
}

function countCalls(): () => string {
  let count = 0;
  return () => String(++count);
}
