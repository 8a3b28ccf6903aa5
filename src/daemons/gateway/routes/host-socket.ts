import type { IncomingMessage } from 'node:http';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { HEADERS, HOST_CLOSE, HOST_SOCKET } from '../../../contracts/index.ts';
import type { Http } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { createTokenBucket, type PlatformServices } from '../../../plugins/index.ts';
import type { HostStore } from '../../../store/ports/index.ts';
import { HostSession, type Wire } from '../domain/hosts/session.ts';
import type { HostSessions } from '../domain/hosts/sessions.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import type { Revocations } from '../domain/identity/revocations.ts';
import type { ClientUpgrade, UpgradeHandler } from '../proxy/client-upgrade.ts';
import { createFrameBoundary } from '../proxy/frame-boundary.ts';

export interface HostSocketServices {
  ownSockets: Map<string, UpgradeHandler>;
  hostSessions: HostSessions;
  hostStore: HostStore;
  platformServices: PlatformServices;
  authenticator: Authenticator;
  revocations: Revocations;
}

/** After a close frame; a peer that does not answer it is cut off. */
const CLOSE_WITHIN_MS = 1000;
/** What one agent may send on average and at once; one that sends more is read more slowly, which slows it down and nobody else. */
const RATE = { framesPerSecond: 1000, frames: 4000, bytesPerSecond: 16 * 1024 ** 2, bytes: 32 * 1024 ** 2 };
/** What its frames may take of our time: what one may hold can keep us for 0.2 s. */
const TIME = { msPerSecond: 250, ms: 500 };

/** The socket of host agents: authenticated as any upgrade, then by the host's own key. @spec Authentication 8 */
export function hostSocketRoutes(http: Http, services: HostSocketServices): void {
  const { ownSockets, hostSessions, revocations } = services;
  const { kit } = http;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: HOST_SOCKET.messageBytes,
  });
  const requestIds = new WeakMap<IncomingMessage, string>();
  server.on('headers', (headers, request) => {
    headers.push(`${HEADERS.requestId}: ${requestIds.get(request)}`);
  });
  // Comes out of `handleUpgrade`, to be answered in our shape: ws would say it in its own.
  server.on('wsClientError', ({ message }) => {
    throw new PlatformError('VALIDATION_ERROR', `${message}.`, {
      headers: { 'sec-websocket-version': '13' },
    });
  });
  let isDraining = false;

  function connect(upgrade: ClientUpgrade, socket: WebSocket): void {
    const { caller, requestId, traceId } = upgrade;
    const session = new HostSession({
      sessionId: `session_${kit.random.uuid()}`,
      wire: wireOf(socket),
      principal: caller,
      store: services.hostStore,
      services: services.platformServices,
      clock: kit.clock,
      logger: kit.logger.child({ requestId, traceId, tenantId: caller.namespaceId }),
      authenticate: async (accessToken) =>
        services.authenticator.authenticate({
          rawHeaders: ['authorization', `Bearer ${accessToken}`],
          requestId,
          traceId,
          ip: upgrade.ip,
        }),
      isRevoked: revocations.isRevoked,
      onOpen: (opened) => hostSessions.adopt(opened),
      onClosed: (closed) => hostSessions.remove(closed),
    });
    hostSessions.greet(session);
    checkFrames(upgrade.socket, session);
    readFrames(socket, session);
    socket.on('close', () => session.ended());
    session.start();
    // The host may have been revoked between the authentication of its upgrade and now.
    session.tick();
  }

  ownSockets.set(HOST_SOCKET.path, (upgrade) => {
    if (isDraining)
      throw new PlatformError('SERVICE_UNAVAILABLE', 'The gateway is stopping; connect again later.');
    if (upgrade.caller.kind === 'container')
      throw new PlatformError('FORBIDDEN', "A container's token connects no host.");
    requestIds.set(upgrade.request, upgrade.requestId);
    server.handleUpgrade(upgrade.request, upgrade.socket, upgrade.head, (socket) => connect(upgrade, socket));
  });
  http.get(HOST_SOCKET.path, {
    async onRequest(request) {
      request.caller = await kit.authenticate(request);
      throw new PlatformError(
        'UPGRADE_REQUIRED',
        'Hosts connect here by WebSocket; this is a plain request.',
        {
          headers: { upgrade: 'websocket', connection: 'upgrade', 'sec-websocket-version': '13' },
        },
      );
    },
    handler: () => {
      throw new Error('It is refused before its handler.');
    },
  });
  revocations.onRevoked(() => hostSessions.checkLimits());
  http.addHook('preClose', async () => {
    isDraining = true;
    await hostSessions.drain();
  });
}

function wireOf(socket: WebSocket): Wire {
  return {
    send: (text, onSent) => socket.send(text, onSent),
    close(code, reason) {
      socket.close(code, reason);
      // A socket that is not read would take the close frame never.
      systemClock.after(CLOSE_WITHIN_MS, () => socket.terminate());
    },
    get bufferedBytes() {
      return socket.bufferedAmount;
    },
  };
}

/** ws takes a frame length in any form; a session that is closed ignores what ws still reads. */
function checkFrames(socket: ClientUpgrade['socket'], session: HostSession): void {
  const boundary = createFrameBoundary(HOST_SOCKET.messageBytes);
  const check = (chunk: Buffer): void => {
    const fault = boundary.push(chunk);
    if (!fault) return;
    socket.off('data', check);
    session.close(fault.code, fault.reason);
  };
  // Before the listener of ws, which would act on the frame first.
  socket.prependListener('data', check);
}

function readFrames(socket: WebSocket, session: HostSession): void {
  const frames = createTokenBucket(systemClock, RATE.framesPerSecond, RATE.frames);
  const bytes = createTokenBucket(systemClock, RATE.bytesPerSecond, RATE.bytes);
  const time = createTokenBucket(systemClock, TIME.msPerSecond, TIME.ms);
  let stopWaiting = (): void => {};
  // ws itself closes with 1007, 1009 or 1002 for what breaks the protocol.
  socket.on('error', () => {});
  socket.on('message', (data: RawData, isBinary: boolean) => {
    if (isBinary) return session.close(HOST_CLOSE.binary, 'frames are text');
    const text = (data as Buffer).toString('utf8');
    const startedAt = performance.now();
    session.receive(text);
    const tookMs = performance.now() - startedAt;
    const waitMs = Math.max(frames.spend(1), bytes.spend(text.length), time.spend(tookMs));
    if (waitMs === 0) return;
    // What had been read already still comes; the latest of it knows how long to wait.
    stopWaiting();
    socket.pause();
    stopWaiting = systemClock.after(waitMs, () => socket.resume());
  });
}
