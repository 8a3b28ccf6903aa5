import type { PlatformCode, PlatformConfig, ServiceName } from '../contracts/index.ts';
import { messageOf, PlatformError, toPlatformError } from '../kit/errors.ts';
import type { KeyMaterial } from '../kit/keys.ts';
import type { LogLevel } from '../kit/logger.ts';
import type { SandboxStatus } from '../plugins/index.ts';
import type { OperatorCredentials } from './define-daemon.ts';
import type { Frame } from './group/link.ts';

export type PeerUrls = Partial<Record<ServiceName, string>>;

/** All that a daemon's process is told. It travels over the channel, so that no secret stands in arguments or environment. */
export interface DaemonStart {
  config: PlatformConfig;
  profile: string;
  projectDir: string;
  configFile: string | null;
  dataDir: string;
  keys: KeyMaterial;
  operator: OperatorCredentials | null;
  /** Those that are known already; the others follow. */
  peers: PeerUrls;
  listen: { host: string; port: number };
  logLevel?: LogLevel;
  /** Whether the process before died of a fault of its own: of an error or a signal that no one sends. */
  hadFault?: boolean;
  /** Set for a process that its daemon's first one started to share its port. */
  sibling?: { place: number };
}

/**
 * A listening socket on its way between processes. Whoever merely keeps it takes no connection from it: those wait in the
 * kernel until somebody listens again.
 */
export interface Listener {
  close(): void;
}

/** What the supervisor says; a `start` may bring the listener of the process before. */
export type ToDaemon =
  | { type: 'start'; start: DaemonStart }
  | { type: 'peers'; urls: PeerUrls }
  | { type: 'stop' };

/** What a daemon's first process says to the others; it stands in the supervisor's place. */
export type ToSibling = ToDaemon | { type: 'group'; frame: Frame };

/** A PlatformError as it travels between processes. */
export interface ErrorMessage {
  code: PlatformCode;
  message: string;
  details: Record<string, unknown>;
}

/**
 * What a daemon answers; `listening` brings its listener, unless it shares its port. After `failed` it exits. `sandbox`
 * comes whenever the confinement of the plugin processes that it starts changes.
 */
export type FromDaemon =
  | { type: 'listening'; url: string; port: number }
  | { type: 'sandbox'; sandbox: SandboxStatus }
  | { type: 'failed'; error: ErrorMessage };

export type FromSibling = FromDaemon | { type: 'group'; frame: Frame };

export function toErrorMessage(thrown: unknown): ErrorMessage {
  const { code, message, details } = toPlatformError(thrown);
  return { code, message, details };
}

/** Why a process of ours did not start, for whoever started it on this machine: unlike a caller, they need the cause. */
export function toStartFailure(what: string, thrown: unknown): ErrorMessage {
  if (thrown instanceof PlatformError) return toErrorMessage(thrown);
  return { code: 'INTERNAL_ERROR', message: `${what} could not start: ${messageOf(thrown)}`, details: {} };
}

export function fromErrorMessage({ code, message, details }: ErrorMessage): PlatformError {
  return new PlatformError(code, message, { details });
}
