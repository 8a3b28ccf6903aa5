import type { ServiceName } from '../contracts/index.ts';
import type { ErrorMessage } from '../kit/errors/error-message.ts';
import type { SandboxStatus } from '../plugins/index.ts';

export type { SandboxStatus } from '../plugins/index.ts';

export type ServiceState = 'stopped' | 'starting' | 'ready' | 'restarting' | 'stopping' | 'failed';

/** How the service's process last ended. It is null if no process has ended. */
export interface LastExit {
  /** Time of the exit in epoch milliseconds. */
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
  /** Restarts after crashes since the supervisor started. */
  restarts: number;
  /** Time of the next restart in epoch milliseconds. It is null if no restart is scheduled. */
  nextStartAt: number | null;
  lastExit: LastExit | null;
  /** The sandbox that the process reported when it last started a plugin. It is null if it has started none. */
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
  /** The weakest sandbox of all services, from their processes or config; null if none is running. */
  sandbox: SandboxStatus | null;
  services: ServiceStatus[];
}

/** A plugin that failed to load, with its first problem. */
export interface BrokenPlugin {
  id: string;
  message: string;
}

/** Events of services, for display and log. */
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

/** Messages of a detached supervisor to the command that started it. */
export type SupervisorReport =
  | { type: 'event'; event: SupervisorEvent }
  | { type: 'ready'; status: SupervisorStatus; firstStart: boolean; brokenPlugins: BrokenPlugin[] }
  | { type: 'failed'; error: ErrorMessage };

/** Paths of the HTTP interface on the unix socket in `run/`. */
export const CONTROL = {
  status: '/status',
  stop: '/stop',
  restart: '/restart',
} as const;
