import type { ServiceName } from '../contracts/index.ts';
import type { ErrorMessage } from '../kit/errors/error-message.ts';
import type { SandboxStatus } from '../plugins/index.ts';

export type { SandboxStatus } from '../plugins/index.ts';

export type ServiceState = 'stopped' | 'starting' | 'ready' | 'restarting' | 'stopping' | 'failed';

/** Describes how the last process of a service ended. */
export interface LastExit {
  /** Time of the exit, in epoch milliseconds. */
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
  /** Number of restarts after crashes since the supervisor started. */
  restarts: number;
  /** Time of the scheduled restart, in epoch milliseconds. Null if no restart is scheduled. */
  nextStartAt: number | null;
  lastExit: LastExit | null;
  /** The sandbox of the plugin that the process started last. Null if the process has started no plugin. */
  sandbox: SandboxStatus | null;
  /** Processes that share the port with the first process. Missing if the service has one process. */
  furtherProcesses?: ProcessStatus[];
}

/** State of a further process of a service. `number` counts from 2. */
export type ProcessStatus = Pick<
  ServiceStatus,
  'state' | 'pid' | 'uptimeMs' | 'restarts' | 'nextStartAt' | 'lastExit'
> & { number: number };

export interface SupervisorStatus {
  pid: number;
  version: string;
  profile: string;
  projectDir: string;
  dataDir: string;
  configFile: string | null;
  uptimeMs: number;
  /** The weakest sandbox among the running services. Null if no service is running. */
  sandbox: SandboxStatus | null;
  services: ServiceStatus[];
}

/** A plugin that failed to load, with its first problem. */
export interface BrokenPlugin {
  id: string;
  message: string;
}

/** The process that an event is about. `process` is missing for the first process of a service. */
interface EventSubject {
  service: ServiceName;
  process?: number;
}

/** Returns the name of a process for messages. */
export function subjectName({ service, process }: EventSubject): string {
  return process === undefined ? service : `${service}, process ${process},`;
}

export type SupervisorEvent =
  | { type: 'waiting'; reason: string }
  | (EventSubject & { type: 'ready'; url: string; pid: number; tookMs: number })
  | (EventSubject & { type: 'crashed'; reason: string; retryInMs: number })
  | (EventSubject & {
      type: 'crash-loop';
      reason: string;
      crashes: number;
      retryInMs: number;
      lastLines: string[];
    })
  | (EventSubject & { type: 'stopped'; reason: string; killed: boolean });

/** Messages of a detached supervisor to the command that started the supervisor. */
export type SupervisorReport =
  | { type: 'event'; event: SupervisorEvent }
  | { type: 'ready'; status: SupervisorStatus; firstStart: boolean; brokenPlugins: BrokenPlugin[] }
  | { type: 'failed'; error: ErrorMessage };

/** Request paths that the supervisor serves on its control socket. */
export const CONTROL = {
  status: '/status',
  stop: '/stop',
  restart: '/restart',
} as const;
