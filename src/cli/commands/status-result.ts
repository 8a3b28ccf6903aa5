import type { BrokenPlugin, SupervisorStatus } from '../supervisor/control-protocol.ts';
import type { GatewayStatus, ServiceDegradation } from './status-of-services.ts';

/** What runs, beside the services themselves. */
export interface Counted {
  /** Host agents that are not revoked; null when the gateway could not be asked. */
  hosts: { registered: number; online: number } | null;
  /** What of the plugins runs; null when the marketplace could not be asked. */
  plugins: { loaded: number; disabled: number; broken: BrokenPlugin[] } | null;
  /** What of a service that is up does not work as it should. */
  degraded: ServiceDegradation[];
}

export interface StatusResult extends Omit<SupervisorStatus, 'pid' | 'uptimeMs'>, Counted {
  running: boolean;
  /** What starts it, while it does not run. */
  hint: string | null;
  pid: number | null;
  uptimeMs: number | null;
}

/** A gateway elsewhere, which says nothing of the processes there. */
export interface RemoteStatus extends GatewayStatus, Counted {
  running: true;
}
