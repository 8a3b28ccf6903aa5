import { formatDuration } from '../../kit/duration.ts';
import { type Style, table } from '../style.ts';
import type { ServiceState, ServiceStatus } from '../supervisor/control-protocol.ts';

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

/** When the supervisor starts the service again, for one that is down after a crash. */
export function nextStartOf({ nextStartAt }: ServiceStatus): string[] {
  return nextStartAt === null ? [] : [`starts again at ${new Date(nextStartAt).toISOString()}`];
}

/** The services as a table: what runs where, since when, and how it last ended. */
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
