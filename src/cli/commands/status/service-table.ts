import { formatDuration } from '../../../kit/time/duration.ts';
import type { ProcessStatus, ServiceState, ServiceStatus } from '../../../supervisor/control-protocol.ts';
import type { Style } from '../../style.ts';
import { table } from '../../table.ts';

const STATE_COLOURS: Record<ServiceState, 'green' | 'yellow' | 'red' | 'gray'> = {
  ready: 'green',
  starting: 'yellow',
  restarting: 'yellow',
  stopping: 'yellow',
  failed: 'red',
  stopped: 'gray',
};

export interface StatusView {
  services: ServiceStatus[];
}

/** Returns a list with the time of the next restart. The list is empty if no restart is scheduled. */
export function nextStartOf({ nextStartAt }: Pick<ServiceStatus, 'nextStartAt'>): string[] {
  return nextStartAt === null ? [] : [`restarts at ${new Date(nextStartAt).toISOString()}`];
}

/** Formats the services as a table with state, address, uptime and last exit. */
export function statusText({ services }: StatusView, style: Style): string {
  const rows = services.flatMap((service) => [
    [service.name, ...cells(service, service.url, style)],
    ...(service.furtherProcesses ?? []).map((further) => [
      `${service.name} ${further.number}`,
      ...cells(further, null, style),
    ]),
  ]);
  return table(['service', 'state', 'url', 'pid', 'uptime', 'restarts', 'last exit'], rows, style);
}

function cells(process: Omit<ProcessStatus, 'number'>, url: string | null, style: Style): string[] {
  const { state, pid, uptimeMs, restarts, lastExit } = process;
  return [
    style[STATE_COLOURS[state]](state),
    url ?? '-',
    pid === null ? '-' : String(pid),
    uptimeMs === null ? '-' : formatDuration(uptimeMs),
    String(restarts),
    [lastExit?.reason ?? '-', ...nextStartOf(process)].join('; '),
  ];
}
