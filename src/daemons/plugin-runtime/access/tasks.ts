import {
  cancelJob,
  cancelRun,
  emitMessage,
  getJob,
  getRun,
  listPluginWebhooks,
  listRuns,
  type PluginId,
  sendSignal,
  startRun,
  submitJob,
} from '../../../contracts/index.ts';
import { createClient } from '../../../http/index.ts';
import type { EmitAccess, JobAccess, WebhookAccess, WorkflowAccess } from '../../../plugins/index.ts';
import type { Resources } from '../../define-daemon.ts';
import { callOptions } from './call-options.ts';

type Access = Pick<Resources, 'peers' | 'keys'>;

/** Access to runs and jobs by HTTP calls to the workflow service. Each call contains the tenant of the execution. */
export function createTaskAccess({ peers, keys }: Access): { workflows: WorkflowAccess; jobs: JobAccess } {
  const client = createClient({ url: () => peers.urlOf('workflow'), peer: 'workflow service' });
  const options = callOptions(keys);
  return {
    workflows: {
      start: (scope, body) => client.call(startRun, { body }, options(scope)),
      get: (scope, runId) => client.call(getRun, { params: { runId } }, options(scope)),
      list: (scope, query) => client.call(listRuns, { query }, options(scope)),
      cancel: (scope, runId) => client.call(cancelRun, { params: { runId } }, options(scope)),
      async signal(scope, runId, name, body) {
        await client.call(sendSignal, { params: { runId, name }, body }, options(scope));
      },
    },
    jobs: {
      submit: (scope, body) => client.call(submitJob, { body }, options(scope)),
      get: (scope, jobId) => client.call(getJob, { params: { jobId } }, options(scope)),
      cancel: (scope, jobId) => client.call(cancelJob, { params: { jobId } }, options(scope)),
    },
  };
}

/** Access of plugins to their webhooks, for services other than the gateway. */
export function createWebhookAccess({ peers, keys }: Access): WebhookAccess {
  const client = createClient({ url: () => peers.urlOf('gateway'), peer: 'gateway' });
  const options = callOptions(keys);
  return {
    list: async (scope, pluginId) =>
      (await client.call(listPluginWebhooks, { params: { pluginId: pluginId as PluginId } }, options(scope)))
        .items,
  };
}

/** Access of plugins to outgoing messages by HTTP calls to the gateway, which stores them. */
export function createEmitAccess({ peers, keys }: Access): EmitAccess {
  const client = createClient({ url: () => peers.urlOf('gateway'), peer: 'gateway' });
  const options = callOptions(keys);
  return {
    emit: (scope, pluginId, body) => client.call(emitMessage, { params: { pluginId }, body }, options(scope)),
  };
}
