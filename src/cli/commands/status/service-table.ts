import { formatDuration } from '../../../kit/time/duration.ts';
import type { ServiceState, ServiceStatus } from '../../../supervisor/control-protocol.ts';
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
export function nextStartOf({ nextStartAt }: ServiceStatus): string[] {
  return nextStartAt === null ? [] : [`restarts at ${new Date(nextStartAt).toISOString()}`];
}

/** Formats the services as a table with state, address, uptime and last exit. */
export function statusText({ services }: StatusView, style: Style): string {
  const rows = services.map((service) => [
    service.name,
    style[STATE_COLOURS[service.state]](service.state),
    service.url ?? '-',
    service.pid === null ? '-' : String(service.pid),
    service.uptimeMs === null ? '-' : formatDuration(service.uptimeMs),
    String(service.restarts),
    [service.lastExit?.reason ?? '-', ...nextStartOf(service)].join('; '),
  ]);
  return table(['service', 'state', 'url', 'pid', 'uptime', 'restarts', 'last exit'], rows, style);
}
