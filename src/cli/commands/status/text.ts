import { formatDuration } from '../../../kit/time/duration.ts';
import type { SandboxStatus } from '../../../supervisor/control-protocol.ts';
import { membersText } from '../../members.ts';
import { nodeText } from '../../node-text.ts';
import type { Style } from '../../style.ts';
import type { Counted, RemoteStatus, StatusResult } from './result.ts';
import { statusText } from './service-table.ts';

const GB = 1e9;

export function platformText(result: StatusResult, style: Style): string {
  const where = style.dim(`${result.projectDir} (data: ${result.dataDir})`);
  const members = result.members ? ['', membersText(result.members, style)] : [];
  if (!result.running) return `svc is ${style.yellow('not running')} in ${where}\n${result.hint}`;
  const facts = `pid ${result.pid}, up ${formatDuration(result.uptimeMs ?? 0)}, profile ${result.profile}`;
  return [
    `svc ${result.version} is running${nodeText(result.services)} in ${where}`,
    facts,
    ...sandboxLines(result),
    ...detailLines(result, style),
    '',
    statusText(result, style),
    ...members,
  ].join('\n');
}

export function gatewayText(result: RemoteStatus, style: Style): string {
  const { gateway, status, version, uptimeMs } = result;
  const state = status === 'ok' ? style.green(status) : style.yellow(status);
  return [
    `the gateway at ${gateway} is ${state}`,
    `svc ${version}, up ${formatDuration(uptimeMs)}`,
    ...detailLines(result, style),
    ...nodeLines(result.node, style),
  ].join('\n');
}

function nodeLines(node: RemoteStatus['node'], style: Style): string[] {
  if (!node) return [];
  const { freeBytes, totalBytes } = node.disk;
  const services = node.services.map(({ name, isRunning, restarts, lastExit }) => {
    const state = isRunning ? 'runs' : style.red('does not run');
    const times = restarts === 0 ? '' : `, ${restarts} restarts after crashes`;
    const exit = lastExit ? `; last exit ${new Date(lastExit.at).toISOString()}: ${lastExit.reason}` : '';
    return `  ${name} ${state}${times}${exit}`;
  });
  return [
    `disk: ${(freeBytes / GB).toFixed(1)} of ${(totalBytes / GB).toFixed(1)} GB are free`,
    ...(services.length > 0 ? ['services of the node that answered:', ...services] : []),
  ];
}

function detailLines({ hosts, plugins, degraded }: Counted, style: Style): string[] {
  return [
    ...(hosts?.registered ? [`${hosts.online} of ${hosts.registered} hosts are connected`] : []),
    ...pluginLines(plugins, style),
    ...degraded.map(
      ({ service, reasonCode, message }) =>
        `${style.yellow(`${service} is degraded`)} (${reasonCode}): ${message}`,
    ),
  ];
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

/**
 * Formats the sandbox of the platform. Also lists services whose sandbox differs, for example after a restart with a
 * changed config.
 */
function sandboxLines({ sandbox, services }: StatusResult): string[] {
  const differing = services.filter(({ sandbox: used }) => used && used.mode !== sandbox?.mode);
  return [
    `plugin sandbox: ${sandboxWords(sandbox)}`,
    ...differing.map(({ name, sandbox: used }) => `  plugins of ${name}: ${sandboxWords(used)}`),
  ];
}

function sandboxWords(sandbox: SandboxStatus | null): string {
  if (sandbox === null) return '(unknown)';
  const network = sandbox.networkGuarded ? '' : '; network is NOT restricted';
  const reason = sandbox.reason ? ` (${sandbox.reason})` : '';
  if (sandbox.mode === 'bwrap') return `bubblewrap and Node's permission model${network}`;
  if (sandbox.mode === 'permission') return `Node's permission model only${network}${reason}`;
  return `none, so plugins cannot start${reason}`;
}
