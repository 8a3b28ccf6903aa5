import {
  listClients,
  listCommands,
  listDeliveries,
  listHosts,
  listJobs,
  listPlugins,
  listRuns,
  listSchedules,
  listTokens,
  listWebhooks,
  listWorkflows,
} from '../../contracts/index.ts';
import type { Client } from '../../http/client.ts';
import type { Candidate } from './candidate.ts';

export interface List {
  /** Returns the preceding arguments on which the values depend. */
  needs(given: readonly string[]): readonly string[];
  fetchValues(client: Client, given: readonly string[], signal: AbortSignal): Promise<Candidate[]>;
}

/** Page size of lists that grow without bound. Only the newest items are offered as completions. */
const MAX_SHOWN = 50;

/** Completion values of arguments. Each list is fetched with one request to an API endpoint. */
export const LISTS: Readonly<Record<string, List>> = {
  plugins: list(async (client, signal) => {
    const { items } = await client.call(listPlugins, {}, { signal });
    return items.map(({ id, version, status }) => [id, `${version ?? ''} ${status}`.trim()]);
  }),
  pluginCommands: list(async (client, signal, plugin) => {
    const { items } = await client.call(listCommands, {}, { signal });
    return items
      .filter(({ pluginId }) => pluginId === plugin)
      .map(({ id, description }) => [id, description]);
  }),
  webhookEvents: list(async (client, signal, plugin) => {
    const { items } = await client.call(listWebhooks, {}, { signal });
    return items
      .filter(({ pluginId }) => plugin === undefined || pluginId === plugin)
      .map(({ event, provisioned }) => [event, provisioned ? 'provisioned' : 'not provisioned']);
  }),
  webhookInstances: list(async (client, signal, plugin, event) => {
    const { items } = await client.call(listWebhooks, {}, { signal });
    return items
      .filter((item) => item.pluginId === plugin && item.event === event)
      .flatMap(({ instances }) => instances.map(({ instanceId }): [string, null] => [instanceId, null]));
  }),
  deliveries: list(async (client, signal) => {
    const { items } = await client.call(listDeliveries, { query: { limit: MAX_SHOWN } }, { signal });
    return items.map(({ webhookId, pluginId, event, status }) => [
      webhookId,
      `${pluginId} ${event} ${status}`,
    ]);
  }),
  hosts: list(async (client, signal) => {
    const { items } = await client.call(listHosts, { query: { limit: 500 } }, { signal });
    return items.map(({ hostId, name, status }) => [hostId, `${name} ${status}`]);
  }),
  clients: list(async (client, signal) => {
    const { items } = await client.call(listClients, { query: { limit: 500 } }, { signal });
    return items.map(({ clientId, name }) => [clientId, name]);
  }),
  tokens: list(async (client, signal) => {
    const { items } = await client.call(listTokens, { query: { limit: 500 } }, { signal });
    return items.map(({ jti, hostId }) => [jti, hostId]);
  }),
  runs: list(async (client, signal) => {
    const { items } = await client.call(listRuns, { query: { limit: MAX_SHOWN } }, { signal });
    return items.map(({ id, workflowId, status }) => [id, `${workflowId} ${status}`]);
  }),
  workflows: list(async (client, signal) => {
    const { items } = await client.call(listWorkflows, {}, { signal });
    return items.map(({ id, name }) => [id, name]);
  }),
  jobs: list(async (client, signal) => {
    const { items } = await client.call(listJobs, { query: { limit: MAX_SHOWN } }, { signal });
    return items.map(({ id, handler, status }) => [id, `${handler} ${status}`]);
  }),
  schedules: list(async (client, signal) => {
    const { items } = await client.call(listSchedules, {}, { signal });
    return items.map(({ id, cron }) => [id, cron]);
  }),
};

type FetchValues = (
  client: Client,
  signal: AbortSignal,
  ...given: string[]
) => Promise<ReadonlyArray<readonly [value: string, description: string | null | undefined]>>;

/**
 * `fetchValues` has two fixed parameters, followed by one parameter for each preceding argument on which the values
 * depend.
 */
function list(fetchValues: FetchValues): List {
  return {
    needs: (given) => given.slice(0, Math.max(0, fetchValues.length - 2)),
    async fetchValues(client, given, signal) {
      const found = await fetchValues(client, signal, ...given);
      const byValue = new Map(found.map(([value, description]) => [value, description]));
      return [...byValue].map(([value, description]) => ({ value, ...(description ? { description } : {}) }));
    },
  };
}
