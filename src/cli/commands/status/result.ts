import type { BrokenPlugin, SupervisorStatus } from '../../../supervisor/control-protocol.ts';
import type { GatewayStatus, ServiceDegradation } from './services.ts';

/** Counts of hosts and plugins, and degradations. */
export interface Counted {
  /** Hosts that are not revoked; null if the gateway did not answer. */
  hosts: { registered: number; online: number } | null;
  /** Plugins by state; null if the marketplace did not answer. */
  plugins: { loaded: number; disabled: number; broken: BrokenPlugin[] } | null;
  /** Faults of running services. */
  degraded: ServiceDegradation[];
}

export interface StatusResult extends Omit<SupervisorStatus, 'pid' | 'uptimeMs'>, Counted {
  running: boolean;
  /** How to start the platform, if it is not running. */
  hint: string | null;
  pid: number | null;
  uptimeMs: number | null;
}

/** A remote gateway, without information on its processes. */
export interface RemoteStatus extends GatewayStatus, Counted {
  running: true;
}
