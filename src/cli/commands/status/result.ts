import type { getNodeStatus, ReplyOf } from '../../../contracts/index.ts';
import type { BrokenPlugin, SupervisorStatus } from '../../../supervisor/control-protocol.ts';
import type { MemberView } from '../../members.ts';
import type { GatewayStatus, ServiceDegradation } from './services.ts';

/** Status values that are available for local and remote gateways. */
export interface Counted {
  /** Host counts without revoked hosts. Null if the gateway did not answer. */
  hosts: { registered: number; online: number } | null;
  /** Plugins by state. Null if the marketplace service did not answer. */
  plugins: { loaded: number; disabled: number; broken: BrokenPlugin[] } | null;
  /** Problems that running services reported. */
  degraded: ServiceDegradation[];
}

export interface StatusResult extends Omit<SupervisorStatus, 'pid' | 'uptimeMs'>, Counted {
  running: boolean;
  /** Hint on how to start the platform. Null if the platform is running. */
  hint: string | null;
  pid: number | null;
  uptimeMs: number | null;
  /** Services of all nodes. Absent for a single node, or if the store does not answer. */
  members?: MemberView[];
}

/** Status of a remote gateway. */
export interface RemoteStatus extends GatewayStatus, Counted {
  running: true;
  /** Disk and services of the node that answered. Null if the caller is no administrator of all namespaces. */
  node: ReplyOf<typeof getNodeStatus> | null;
}
