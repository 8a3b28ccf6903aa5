import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Principal } from '../domain/identity/authenticator.ts';

/** An upgrade request whose caller is authenticated. */
export interface ClientUpgrade {
  request: IncomingMessage;
  socket: Duplex;
  /** Bytes received after the request. */
  head: Buffer;
  caller: Principal;
  requestId: string;
  traceId: string;
  spanId: string;
  ip: string;
}

/** Serves one of the gateway's own upgrades. Throws or rejects with the error for the client. */
export type UpgradeHandler = (upgrade: ClientUpgrade) => void | Promise<void>;
