import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Principal } from '../domain/identity/authenticator.ts';

/** An upgrade request whose caller is authenticated. */
export interface ClientUpgrade {
  request: IncomingMessage;
  socket: Duplex;
  /** Bytes of the WebSocket stream that were read together with the request headers. */
  head: Buffer;
  caller: Principal;
  requestId: string;
  traceId: string;
  spanId: string;
  ip: string;
}

/**
 * Handles an upgrade request for one of the gateway's own WebSockets. Throws or rejects with the error to send to the
 * client.
 */
export type UpgradeHandler = (upgrade: ClientUpgrade) => void | Promise<void>;
