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
import type { Candidate } from './complete.ts';

export interface List {
  /** The words before that decide what is listed. */
  needs(given: readonly string[]): readonly string[];
  ask(client: Client, given: readonly string[], signal: AbortSignal): Promise<Candidate[]>;
}

/** The latest of what grows without end. */
const SHOWN = 50;

/** Where the values of arguments come from: the API's own lists, the first page of them. */
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
    const { items } = await client.call(listDeliveries, { query: { limit: SHOWN } }, { signal });
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
    const { items } = await client.call(listRuns, { query: { limit: SHOWN } }, { signal });
    return items.map(({ id, workflowId, status }) => [id, `${workflowId} ${status}`]);
  }),
  workflows: list(async (client, signal) => {
    const { items } = await client.call(listWorkflows, {}, { signal });
    return items.map(({ id, name }) => [id, name]);
  }),
  jobs: list(async (client, signal) => {
    const { items } = await client.call(listJobs, { query: { limit: SHOWN } }, { signal });
    return items.map(({ id, handler, status }) => [id, `${handler} ${status}`]);
  }),
  schedules: list(async (client, signal) => {
    const { items } = await client.call(listSchedules, {}, { signal });
    return items.map(({ id, cron }) => [id, cron]);
  }),
};

type Ask = (
  client: Client,
  signal: AbortSignal,
  ...given: string[]
) => Promise<ReadonlyArray<readonly [value: string, description: string | null | undefined]>>;

/** `ask` says by its parameters how many of the words before it needs. */
function list(ask: Ask): List {
  return {
    needs: (given) => given.slice(0, Math.max(0, ask.length - 2)),
    async ask(client, given, signal) {
      const found = await ask(client, signal, ...given);
      const byValue = new Map(found.map(([value, description]) => [value, description]));
      return [...byValue].map(([value, description]) => ({ value, ...(description ? { description } : {}) }));
    },
  };
}
