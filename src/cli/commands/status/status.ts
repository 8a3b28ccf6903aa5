import { z } from 'zod';
import {
  getNodeStatus,
  listHosts,
  listPlugins,
  type PluginRecord,
  SERVICE_NAMES,
} from '../../../contracts/index.ts';
import type { Client } from '../../../http/client.ts';
import { version } from '../../../kit/files/paths.ts';
import { brokenOf } from '../../../supervisor/broken-plugins.ts';
import { findSupervisor } from '../../../supervisor/control-client.ts';
import type { ServiceStatus } from '../../../supervisor/control-protocol.ts';
import { readRunFile, runningUrl } from '../../../supervisor/run-file.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { createGatewayClient, operatorToken } from '../../gateway-client.ts';
import { readMembers } from '../../members.ts';
import { notRunning, startHint } from '../../not-running.ts';
import { givenGateway, isSameGateway, selectedGateway } from '../../selected-gateway.ts';
import type { RemoteStatus, StatusResult } from './result.ts';
import { degradedServices, gatewayStatus, queryServices } from './services.ts';
import { gatewayText, platformText } from './text.ts';

const COUNT_TIMEOUT_MS = 1000;

/** Result of `svc status --env`: environment variables for a client on this machine. */
interface EnvironmentLines {
  env: Record<string, string>;
}

/** @spec docs/operations.md "svc status" */
export const status = defineCommand({
  name: 'status',
  summary: 'Show services with address, uptime and last exit',
  example: 'svc status --env > .env.svc',
  args: z.object({
    env: z
      .boolean()
      .default(false)
      .describe(
        'print environment variables for a client, including a SVC_TOKEN of the operator valid for an hour',
      ),
  }),
  async run({ env }, context) {
    if (env) return ok<AnyStatus>(await environmentOf(await currentStatus(context), context));
    const remote = remoteGateway(context);
    if (remote === undefined) {
      const [current, counts, members] = await Promise.all([
        currentStatus(context),
        localCounts(context),
        readMembers(context.platform()).catch(() => []),
      ]);
      return ok<AnyStatus>({ ...current, ...counts, ...(members.length > 0 ? { members } : {}) });
    }
    const [gateway, counts, node] = await Promise.all([
      gatewayStatus(remote),
      countsOf(context.client),
      nodeOf(context.client),
    ]);
    return ok<AnyStatus>({ running: true, ...gateway, ...counts, node });
  },
  text(result: AnyStatus, style) {
    if ('env' in result)
      return Object.entries(result.env)
        .map(([name, value]) => `${name}=${value}`)
        .join('\n');
    return 'gateway' in result ? gatewayText(result, style) : platformText(result, style);
  },
});

type AnyStatus = StatusResult | RemoteStatus | EnvironmentLines;

/**
 * Returns the URL of the selected gateway if that gateway is remote. If a platform runs on this machine, only `--url`
 * or SVC_GATEWAY_URL can select a remote gateway.
 */
function remoteGateway(context: CommandContext): string | undefined {
  const own = runningUrl(context.folder(), 'gateway');
  const named = own === null ? selectedGateway(context) : givenGateway(context);
  return named !== undefined && own !== null && isSameGateway(context, named, own) ? undefined : named;
}

/** Returns the status of the local platform. If the platform is not running, every service has the state `stopped`. */
async function currentStatus({ folder, platform }: CommandContext): Promise<StatusResult> {
  const supervisor = findSupervisor(folder());
  if (supervisor) {
    const [current, answers] = await Promise.all([
      supervisor.status(),
      queryServices(readRunFile(folder())?.children ?? []),
    ]);
    const degraded = degradedServices(answers, current.services);
    return { running: true, hint: null, hosts: null, plugins: null, degraded, ...current };
  }
  const { profile, projectDir, dataDir, configFile } = platform();
  const services = SERVICE_NAMES.map(
    (name): ServiceStatus => ({
      name,
      state: 'stopped',
      pid: null,
      port: null,
      url: null,
      uptimeMs: null,
      restarts: 0,
      nextStartAt: null,
      lastExit: null,
      sandbox: null,
    }),
  );
  return {
    running: false,
    hint: startHint({ folder, platform }),
    pid: null,
    version,
    profile,
    projectDir,
    dataDir,
    configFile,
    uptimeMs: null,
    sandbox: null,
    hosts: null,
    plugins: null,
    degraded: [],
    services,
  };
}

type Counts = Pick<StatusResult, 'hosts' | 'plugins'>;

/** Returns the counts of the local gateway, even if a login selects another gateway. */
async function localCounts(context: CommandContext): Promise<Counts> {
  const own = runningUrl(context.folder(), 'gateway');
  if (own === null) return { hosts: null, plugins: null };
  const here = { ...context, globals: { ...context.globals, url: own } };
  return countsOf(await createGatewayClient(here));
}

/**
 * Returns the host and plugin counts. A count is null if its request fails, so that the rest of the status is shown.
 */
async function countsOf(client: Client): Promise<Counts> {
  const [hosts, plugins] = await Promise.allSettled([countHosts(client), countPlugins(client)]);
  return {
    hosts: hosts.status === 'fulfilled' ? hosts.value : null,
    plugins: plugins.status === 'fulfilled' ? plugins.value : null,
  };
}

/** Returns the node that answers, or null if the caller may not see it. */
async function nodeOf(client: Client): Promise<RemoteStatus['node']> {
  const signal = AbortSignal.timeout(COUNT_TIMEOUT_MS);
  return client.call(getNodeStatus, {}, { signal }).catch(() => null);
}

async function countHosts(client: Client): Promise<StatusResult['hosts']> {
  const signal = AbortSignal.timeout(COUNT_TIMEOUT_MS);
  const hosts = await allPages((cursor) =>
    client.call(listHosts, { query: pageQueryOf(undefined, cursor) }, { signal }),
  );
  const valid = hosts.filter((host) => host.valid);
  return { registered: valid.length, online: valid.filter(({ status }) => status === 'online').length };
}

async function countPlugins(client: Client): Promise<StatusResult['plugins']> {
  const { items } = await client.call(listPlugins, {}, { signal: AbortSignal.timeout(COUNT_TIMEOUT_MS) });
  const count = (status: PluginRecord['status']) => items.filter((item) => item.status === status).length;
  return { loaded: count('loaded'), disabled: count('disabled'), broken: brokenOf(items) };
}

async function environmentOf(current: StatusResult, context: CommandContext): Promise<EnvironmentLines> {
  const gateway = current.services.find(({ name }) => name === 'gateway')?.url;
  if (!gateway) throw notRunning(context);
  const urls = current.services.flatMap(({ name, url }) =>
    url ? [[`SVC_${name.toUpperCase()}_URL`, url] as const] : [],
  );
  const token = await operatorToken(context, gateway);
  return { env: { ...Object.fromEntries(urls), SVC_TOKEN: token, SVC_NAMESPACE: 'default' } };
}
