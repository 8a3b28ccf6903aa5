import { createServer, type Server, type ServerOptions } from 'node:http';
import { LIMITS } from '../contracts/index.ts';
import type { Random } from '../kit/security/random.ts';
import { createClientErrorAnswer, refuseTunnels } from './client-error.ts';
import { deferContinue, refuseExpectations } from './expectations.ts';
import { cutStalledBodies } from './stalled-body.ts';

/** Options common to all HTTP servers of the platform. */
export const SERVER_LIMITS: ServerOptions = {
  maxHeaderSize: LIMITS.headerBytes,
  headersTimeout: LIMITS.headersTimeoutMs,
  connectionsCheckingInterval: 2000,
  // Disabled because Node would answer a missing `Host` header with an empty body. `requireHost` sends an error body
  // instead.
  requireHostHeader: false,
};

/** Creates a server without a request listener, with the limits of the platform. */
export function createProtocolServer(): Server {
  const server: Server = createServer({
    ...SERVER_LIMITS,
    keepAliveTimeout: LIMITS.keepAliveMs,
    requestTimeout: LIMITS.requestTimeoutMs,
    // HTTP allows a server to ignore an upgrade. Only WebSockets are upgraded, and only if the server has a listener
    // for upgrades.
    shouldUpgradeCallback: (request) =>
      request.headers.upgrade?.toLowerCase() === 'websocket' && server.listenerCount('upgrade') > 0,
  });
  return server;
}

/**
 * Replaces Node's default error responses with error bodies of the platform. Covers unsupported `Expect` headers,
 * `CONNECT` requests and stalled request bodies.
 */
export function keepProtocol(server: Server, random: Random, bodyIdleMs: number = LIMITS.bodyIdleMs): void {
  refuseExpectations(server, random);
  refuseTunnels(server, random);
  deferContinue(server);
  cutStalledBodies(server, bodyIdleMs);
}

/** Applies `keepProtocol` to a server without Fastify, and also answers malformed requests. */
export function keepProtocolAlone(server: Server, random: Random): void {
  keepProtocol(server, random);
  server.on('clientError', createClientErrorAnswer(random));
}
