import { z } from 'zod';
import {
  type Degradation,
  health,
  listHosts,
  listPlugins,
  type PluginRecord,
  SERVICE_NAMES,
  type ServiceName,
} from '../../contracts/index.ts';
import { formatDuration } from '../../kit/duration.ts';
import { version } from '../../kit/paths.ts';
import { allPages, pageQueryOf } from '../all-pages.ts';
import type { CommandContext } from '../context.ts';
import { defineCommand, ok } from '../define-command.ts';
import { operatorToken } from '../gateway-client.ts';
import { notRunning, startHint } from '../not-running.ts';
import type { Style } from '../style.ts';
import { brokenOf } from '../supervisor/broken-plugins.ts';
import { findSupervisor } from '../supervisor/control-client.ts';
import type {
  BrokenPlugin,
  SandboxStatus,
  ServiceStatus,
  SupervisorStatus,
} from '../supervisor/control-protocol.ts';
import { runningUrl } from '../supervisor/run-file.ts';
import { statusText } from './status-view.ts';

const ANSWER_MS = 1000;

export interface StatusResult extends Omit<SupervisorStatus, 'pid' | 'uptimeMs'> {
  running: boolean;
  /** What starts it, while it does not run. */
  hint: string | null;
  pid: number | null;
  uptimeMs: number | null;
  /** Host agents that are not revoked; null when the gateway could not be asked. */
  hosts: { registered: number; online: number } | null;
  /** What of the plugins runs; null when the marketplace could not be asked. */
  plugins: { loaded: number; disabled: number; broken: BrokenPlugin[] } | null;
  /** What of a service that is up does not work as it should. */
  degraded: Array<Degradation & { service: ServiceName }>;
}

/** Lines of an environment file: what a client on this machine needs. */
interface EnvironmentLines {
  env: Record<string, string>;
}

/** @spec docs/operations.md "svc status" */
export const status = defineCommand({
  name: 'status',
  summary: 'What runs where, since when, and how it last ended',
  example: 'svc status --env > .env.svc',
  args: z.object({
    env: z
      .boolean()
      .default(false)
      .describe("print what a client needs as environment lines; SVC_TOKEN is the operator's, for an hour"),
  }),
  async run({ env }, context) {
    if (env)
      return ok<StatusResult | EnvironmentLines>(await environmentOf(await currentStatus(context), context));
    const [current, hosts, plugins, degraded] = await Promise.all([
      currentStatus(context),
      askGateway(context, countHosts),
      askGateway(context, countPlugins),
      askGateway(context, degradations),
    ]);
    return ok<StatusResult | EnvironmentLines>({ ...current, hosts, plugins, degraded: degraded ?? [] });
  },
  text: (result: StatusResult | EnvironmentLines, style) =>
    'env' in result
      ? Object.entries(result.env)
          .map(([name, value]) => `${name}=${value}`)
          .join('\n')
      : describe(result, style),
});

/** A platform that is stopped has a status too: every service `stopped`. */
async function currentStatus({ folder, platform }: CommandContext): Promise<StatusResult> {
  const supervisor = findSupervisor(folder());
  if (supervisor)
    return {
      running: true,
      hint: null,
      hosts: null,
      plugins: null,
      degraded: [],
      ...(await supervisor.status()),
    };
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

/** A status must come in any case, so a gateway that does not answer is passed over. */
async function askGateway<Answer>(
  context: CommandContext,
  ask: (context: CommandContext) => Promise<Answer>,
): Promise<Answer | null> {
  if (runningUrl(context.folder(), 'gateway') === null) return null;
  try {
    return await ask(context);
  } catch {
    return null;
  }
}

/** Of all namespaces. */
async function countHosts({ client }: CommandContext): Promise<StatusResult['hosts']> {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const hosts = await allPages((cursor) =>
    client.call(listHosts, { query: pageQueryOf(undefined, cursor) }, { signal }),
  );
  const valid = hosts.filter((host) => host.valid);
  return { registered: valid.length, online: valid.filter(({ status }) => status === 'online').length };
}

async function countPlugins({ client }: CommandContext): Promise<StatusResult['plugins']> {
  const { items } = await client.call(listPlugins, {}, { signal: AbortSignal.timeout(ANSWER_MS) });
  const count = (status: PluginRecord['status']) => items.filter((item) => item.status === status).length;
  return { loaded: count('loaded'), disabled: count('disabled'), broken: brokenOf(items) };
}

async function degradations({ client }: CommandContext): Promise<StatusResult['degraded']> {
  const { service, degraded = [] } = await client.call(
    health,
    {},
    { signal: AbortSignal.timeout(ANSWER_MS) },
  );
  return degraded.map((each) => ({ service, ...each }));
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

function describe(result: StatusResult, style: Style): string {
  const where = style.dim(`${result.projectDir} (data: ${result.dataDir})`);
  if (!result.running) return `svc is ${style.yellow('not running')} in ${where}\n${result.hint}`;
  const facts = `pid ${result.pid}, up ${formatDuration(result.uptimeMs ?? 0)}, profile ${result.profile}`;
  return [
    `svc ${result.version} runs in ${where}`,
    facts,
    ...sandboxLines(result),
    ...(result.hosts?.registered
      ? [`${result.hosts.online} of ${result.hosts.registered} hosts are connected`]
      : []),
    ...pluginLines(result.plugins, style),
    ...result.degraded.map(
      ({ service, reasonCode, message }) =>
        `${style.yellow(`${service} is degraded`)} (${reasonCode}): ${message}`,
    ),
    '',
    statusText(result, style),
  ].join('\n');
}

function pluginLines(plugins: StatusResult['plugins'], style: Style): string[] {
  if (!plugins || plugins.loaded + plugins.disabled + plugins.broken.length === 0) return [];
  const { loaded, disabled, broken } = plugins;
  const parts = [`${loaded} loaded`, ...(disabled ? [`${disabled} disabled`] : [])];
  if (broken.length > 0) parts.push(style.red(`${broken.length} broken`));
  return [
    `plugins: ${parts.join(', ')}`,
    ...broken.map(({ id, message }) => `  ${style.red(id)}: ${message}`),
  ];
}

/** The services are named where they differ, as after a restart of one of them with another config. */
function sandboxLines({ sandbox, services }: StatusResult): string[] {
  const differing = services.filter(({ sandbox: used }) => used && used.mode !== sandbox?.mode);
  return [
    `plugins are confined by ${sandboxWords(sandbox)}`,
    ...differing.map(({ name, sandbox: used }) => `  those that ${name} starts: ${sandboxWords(used)}`),
  ];
}

function sandboxWords(sandbox: SandboxStatus | null): string {
  if (sandbox === null) return '(not known yet)';
  const network = sandbox.networkGuarded ? '' : '; network is NOT guarded';
  const why = sandbox.reason ? ` (${sandbox.reason})` : '';
  if (sandbox.mode === 'bwrap') return `bubblewrap and Node's permission model${network}`;
  if (sandbox.mode === 'permission') return `Node's permission model alone${network}${why}`;
  return `nothing: plugins do not start${why}`;
}
