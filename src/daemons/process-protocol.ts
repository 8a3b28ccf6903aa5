import type { PlatformConfig, ServiceName } from '../contracts/index.ts';
import type { ErrorMessage } from '../kit/errors/error-message.ts';
import type { KeyMaterial } from '../kit/security/keys.ts';
import type { LogLevel } from '../kit/telemetry/logger.ts';
import type { SandboxStatus } from '../plugins/index.ts';

/** The operator's credentials on this machine, created at the first start. */
export interface OperatorCredentials {
  clientId: string;
  clientSecret: string;
  hostId: string;
  namespaceId: string;
}

export type PeerUrls = Partial<Record<ServiceName, string>>;

/**
 * Start parameters of a service process. The IPC channel carries the parameters, so that no secret appears in arguments
 * or the environment.
 */
export interface DaemonStart {
  config: PlatformConfig;
  profile: string;
  projectDir: string;
  configFile: string | null;
  dataDir: string;
  keys: KeyMaterial;
  operator: OperatorCredentials | null;
  /** Addresses of the services that have already started. The supervisor sends later addresses separately. */
  peers: PeerUrls;
  /** Services that other nodes run. By default there are none. */
  elsewhere?: readonly ServiceName[];
  /** URL of this process that other nodes use, if it differs from the default. */
  advertise?: string;
  listen: { host: string; port: number };
  logLevel?: LogLevel;
  /** Whether the previous process exited with an error or by an unexpected signal. */
  hadFault?: boolean;
  /** Part of this process in a shared port, or undefined if the service has one process. */
  portShare?: PortShare;
}

/** The part of one of several processes that share a service's port. */
export interface PortShare {
  /** Number of the process, from 1. A restarted process keeps its number. */
  number: number;
  /** Whether other processes of the service may already use the port and the store. False for the first start only. */
  joins: boolean;
}

/**
 * A listening socket that one process hands to another process. During the handover, new connections wait in the
 * kernel's backlog.
 */
export interface Listener {
  close(): void;
}

/** Messages of the supervisor to a service. `start` can carry the listener of the previous process. */
export type ToDaemon =
  | { type: 'start'; start: DaemonStart }
  | { type: 'peers'; urls: PeerUrls }
  /**
   * Makes `/ready` answer 503, so that load balancers send no new requests. The service continues to serve requests.
   */
  | { type: 'unready' }
  | { type: 'stop' };

/**
 * Messages of a service process to the supervisor. `listening` carries the listening socket unless processes share the
 * port. `ownUrl` is the URL of this process only. The process exits after `failed`.
 */
export type FromDaemon =
  | { type: 'listening'; url: string; ownUrl: string; port: number }
  | { type: 'sandbox'; sandbox: SandboxStatus }
  | { type: 'failed'; error: ErrorMessage };
