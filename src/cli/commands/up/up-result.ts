import type { BrokenPlugin, SupervisorStatus } from '../../../supervisor/control-protocol.ts';

export interface UpResult extends SupervisorStatus {
  firstStart: boolean;
  alreadyRunning: boolean;
  /** Plugins that failed to load at this start. Empty if the platform was already running. */
  brokenPlugins: BrokenPlugin[];
}
