import { z } from 'zod';
import { listHosts, SERVICE_NAMES } from '../../contracts/index.ts';
import { formatDuration } from '../../kit/duration.ts';
import { PlatformError } from '../../kit/errors.ts';
import { version } from '../../kit/paths.ts';
import { allPages, pageQueryOf } from '../all-pages.ts';
import type { CommandContext } from '../context.ts';
import { defineCommand, ok } from '../define-command.ts';
import type { Style } from '../style.ts';
import { findSupervisor } from '../supervisor/control-client.ts';
import type { SandboxStatus, ServiceStatus, SupervisorStatus } from '../supervisor/control-protocol.ts';
import { statusText } from './status-view.ts';

const HOSTS_MS = 1000;

export interface StatusResult extends Omit<SupervisorStatus, 'pid' | 'uptimeMs'> {
  running: boolean;
  pid: number | null;
  uptimeMs: number | null;
  /** Host agents that are not revoked; null when the gateway could not be asked. */
  hosts: { registered: number; online: number } | null;
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
    const current = await currentStatus(context);
    if (env) return ok<StatusResult | EnvironmentLines>(await environmentOf(current, context));
    return ok<StatusResult | EnvironmentLines>({ ...current, hosts: await countHosts(current, context) });
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
  if (supervisor) return { running: true, hosts: null, ...(await supervisor.status()) };
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
      lastExit: null,
    }),
  );
  return {
    running: false,
    pid: null,
    version,
    profile,
    projectDir,
    dataDir,
    configFile,
    uptimeMs: null,
    sandbox: null,
    hosts: null,
    services,
  };
}

/** Of all namespaces. A status must come in any case, so a gateway that does not answer is passed over. */
async function countHosts(
  { services }: StatusResult,
  { client }: CommandContext,
): Promise<StatusResult['hosts']> {
  if (!services.some(({ name, state }) => name === 'gateway' && state === 'ready')) return null;
  const signal = AbortSignal.timeout(HOSTS_MS);
  try {
    const hosts = await allPages((cursor) =>
      client.call(listHosts, { query: pageQueryOf(undefined, cursor) }, { signal }),
    );
    const valid = hosts.filter((host) => host.valid);
    return { registered: valid.length, online: valid.filter(({ status }) => status === 'online').length };
  } catch {
    return null;
  }
}

async function environmentOf(current: StatusResult, context: CommandContext): Promise<EnvironmentLines> {
  const gateway = current.services.find(({ name }) => name === 'gateway')?.url;
  if (!gateway) {
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'svc is not running here, so there is no gateway to name.',
      {
        details: { hint: 'Start it: svc up -d' },
      },
    );
  }
  const { operatorToken } = await import('../gateway-client.ts');
  const urls = current.services.flatMap(({ name, url }) =>
    url ? [[`SVC_${name.toUpperCase()}_URL`, url] as const] : [],
  );
  const token = await operatorToken(context, gateway);
  return { env: { ...Object.fromEntries(urls), SVC_TOKEN: token, SVC_NAMESPACE: 'default' } };
}

function describe(result: StatusResult, style: Style): string {
  const where = style.dim(`${result.projectDir} (data: ${result.dataDir})`);
  if (!result.running) return `svc is ${style.yellow('not running')} in ${where}\nStart it: svc up -d`;
  const facts = `pid ${result.pid}, up ${formatDuration(result.uptimeMs ?? 0)}, profile ${result.profile}`;
  return [
    `svc ${result.version} runs in ${where}: ${facts}`,
    `plugins are confined by ${sandboxWords(result.sandbox)}`,
    ...(result.hosts?.registered
      ? [`${result.hosts.online} of ${result.hosts.registered} hosts are connected`]
      : []),
    '',
    statusText(result, style),
  ].join('\n');
}

function sandboxWords(sandbox: SandboxStatus | null): string {
  if (sandbox === null) return '(not known yet)';
  const network = sandbox.networkGuarded ? '' : '; network is NOT guarded';
  const why = sandbox.reason ? ` (${sandbox.reason})` : '';
  if (sandbox.mode === 'bwrap') return `bubblewrap and Node's permission model${network}`;
  if (sandbox.mode === 'permission') return `Node's permission model alone${network}${why}`;
  return `nothing: plugins do not start${why}`;
}
