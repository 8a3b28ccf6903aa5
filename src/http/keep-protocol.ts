import { createServer, type Server, type ServerOptions } from 'node:http';
import { LIMITS } from '../contracts/index.ts';
import type { Random } from '../kit/security/random.ts';
import { createClientErrorAnswer, refuseTunnels } from './client-error.ts';
import { deferContinue, refuseExpectations } from './expectations.ts';
import { cutStalledBodies } from './stalled-body.ts';

/** Limits of all HTTP servers of the platform. */
export const SERVER_LIMITS: ServerOptions = {
  maxHeaderSize: LIMITS.headerBytes,
  headersTimeout: LIMITS.headersTimeoutMs,
  connectionsCheckingInterval: 2000,
  // Node would answer with an empty body; `requireHost` sends an error body.
  requireHostHeader: false,
};

/** Creates a server without a request listener, with the limits of the platform. */
export function createProtocolServer(): Server {
  const server: Server = createServer({
    ...SERVER_LIMITS,
    keepAliveTimeout: LIMITS.keepAliveMs,
    requestTimeout: LIMITS.requestTimeoutMs,
    // Unsupported upgrades (h2c, unserved sockets) are ignored, as HTTP allows.
    // Older Node versions emit `upgrade` for them.
    shouldUpgradeCallback: (request) =>
      request.headers.upgrade?.toLowerCase() === 'websocket' && server.listenerCount('upgrade') > 0,
  });
  return server;
}

/**
 * Handles expectations, CONNECT and stalled bodies, which Node would answer itself. Requests go to the `request`
 * listener.
 */
export function keepProtocol(server: Server, random: Random, bodyIdleMs: number = LIMITS.bodyIdleMs): void {
  refuseExpectations(server, random);
  refuseTunnels(server, random);
  deferContinue(server);
  cutStalledBodies(server, bodyIdleMs);
}

/** Like `keepProtocol`, for a server without Fastify, which answers malformed requests itself. */
export function keepProtocolAlone(server: Server, random: Random): void {
  keepProtocol(server, random);
  server.on('clientError', createClientErrorAnswer(random));
}
