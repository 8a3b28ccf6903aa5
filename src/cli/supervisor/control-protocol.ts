import type { ServiceName } from '../../contracts/index.ts';
import type { ErrorMessage } from '../../daemons/process-protocol.ts';
import type { SandboxStatus } from '../../plugins/index.ts';

export type { SandboxStatus } from '../../plugins/index.ts';

export type ServiceState = 'stopped' | 'starting' | 'ready' | 'restarting' | 'stopping' | 'failed';

/** How a service's process last ended; null as long as none has. */
export interface LastExit {
  /** Epoch milliseconds. */
  at: number;
  code: number | null;
  signal: string | null;
  reason: string;
}

/** @spec docs/operations.md "svc status" */
export interface ServiceStatus {
  name: ServiceName;
  state: ServiceState;
  pid: number | null;
  port: number | null;
  url: string | null;
  uptimeMs: number | null;
  /** Restarts after a crash since the supervisor started. */
  restarts: number;
  /** Epoch milliseconds of the restart that is due; null when none is. */
  nextStartAt: number | null;
  lastExit: LastExit | null;
  /** As its process reported when it last started a plugin; null as long as it has started none. */
  sandbox: SandboxStatus | null;
}

export interface SupervisorStatus {
  pid: number;
  version: string;
  profile: string;
  projectDir: string;
  dataDir: string;
  configFile: string | null;
  uptimeMs: number;
  /** The weakest sandbox that a service uses, or would use by the config it runs with; null when nothing runs. */
  sandbox: SandboxStatus | null;
  services: ServiceStatus[];
}

/** A plugin that was left out, and the first of its faults. */
export interface BrokenPlugin {
  id: string;
  message: string;
}

/** What happens to the services, as it is shown and logged. */
export type SupervisorEvent =
  | { type: 'waiting'; reason: string }
  | { type: 'ready'; service: ServiceName; url: string; pid: number; tookMs: number }
  | { type: 'crashed'; service: ServiceName; reason: string; retryInMs: number }
  | {
      type: 'crash-loop';
      service: ServiceName;
      reason: string;
      crashes: number;
      retryInMs: number;
      lastLines: string[];
    }
  | { type: 'stopped'; service: ServiceName; reason: string; killed: boolean };

/** What a detached supervisor reports to the command that started it. */
export type SupervisorReport =
  | { type: 'event'; event: SupervisorEvent }
  | { type: 'ready'; status: SupervisorStatus; firstStart: boolean; brokenPlugins: BrokenPlugin[] }
  | { type: 'failed'; error: ErrorMessage };

/** HTTP over the unix socket in `run/`. */
export const CONTROL = {
  status: '/status',
  stop: '/stop',
  restart: '/restart',
} as const;
