import type { IncomingMessage } from 'node:http';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { HEADERS, HOST_CLOSE, HOST_SOCKET } from '../../../contracts/index.ts';
import type { Http, HttpKit } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { createTokenBucket, type PlatformServices } from '../../../plugins/index.ts';
import type { HostStore } from '../../../store/ports/index.ts';
import type { ChangeFeed } from '../../membership/change-feed.ts';
import type { Fence } from '../../membership/membership.ts';
import type { SocketCutOff } from '../domain/access/socket-access.ts';
import { HostSession, type Wire } from '../domain/hosts/session.ts';
import type { HostSessions } from '../domain/hosts/sessions.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import type { ClientUpgrade, UpgradeHandler } from '../proxy/client-upgrade.ts';
import { FrameBoundary } from '../proxy/frame-boundary.ts';

export interface HostSocketServices {
  ownSockets: Map<string, UpgradeHandler>;
  hostSessions: HostSessions;
  hostStore: HostStore;
  membership: Fence;
  feed: Pick<ChangeFeed, 'spread'>;
  platformServices: PlatformServices;
  authenticator: Authenticator;
  socketCutOff: SocketCutOff;
}

const CLOSE_TIMEOUT_MS = 1000;
/**
 * Average and burst rate limits for the frames and bytes of one agent. The gateway pauses reading from an agent that
 * exceeds a limit.
 */
const RATE = { framesPerSecond: 1000, frames: 4000, bytesPerSecond: 16 * 1024 ** 2, bytes: 32 * 1024 ** 2 };
/** Average and burst limits of the CPU time for handling the frames of one agent. One frame can take 200 ms. */
const TIME = { msPerSecond: 250, ms: 500 };

/**
 * Serves the WebSockets of host agents. After the upgrade, an agent must prove that it has the private key of its host.
 * @spec Authentication 8
 */
export function hostSocketRoutes(http: Http, services: HostSocketServices): void {
  const { ownSockets, hostSessions, socketCutOff } = services;
  const hostSocket = new HostSocket(http.kit, services);
  ownSockets.set(HOST_SOCKET.path, hostSocket.accept);
  refusePlainRequests(http);
  socketCutOff.onRevoked(() => hostSessions.checkLimits());
  http.addHook('preClose', async () => {
    hostSocket.refuseUpgrades();
    await hostSessions.drain();
  });
}

/** Starts a host session for each WebSocket of an agent. */
class HostSocket {
  readonly #kit: HttpKit;
  readonly #services: HostSocketServices;
  readonly #requestIds = new WeakMap<IncomingMessage, string>();
  readonly #server: WebSocketServer;
  #isDraining = false;

  constructor(kit: HttpKit, services: HostSocketServices) {
    this.#kit = kit;
    this.#services = services;
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: HOST_SOCKET.messageBytes,
    });
    this.#server.on('headers', (headers, request) => {
      headers.push(`${HEADERS.requestId}: ${this.#requestIds.get(request)}`);
    });
    // Rejects invalid requests in the platform's error format. Without this listener, ws would send its own response.
    this.#server.on('wsClientError', ({ message }) => {
      throw new PlatformError('VALIDATION_ERROR', `${message}.`, {
        headers: { 'sec-websocket-version': '13' },
      });
    });
  }

  readonly accept: UpgradeHandler = (upgrade) => {
    if (this.#isDraining)
      throw new PlatformError('SERVICE_UNAVAILABLE', 'The gateway is stopping; connect again later.');
    if (upgrade.caller.kind === 'container')
      throw new PlatformError('FORBIDDEN', "A container's token connects no host.");
    this.#requestIds.set(upgrade.request, upgrade.requestId);
    this.#server.handleUpgrade(upgrade.request, upgrade.socket, upgrade.head, (socket) =>
      this.#startSession(upgrade, socket),
    );
  };

  refuseUpgrades(): void {
    this.#isDraining = true;
  }

  #startSession(upgrade: ClientUpgrade, socket: WebSocket): void {
    const { hostSessions } = this.#services;
    const session = this.#sessionOf(upgrade, socket);
    hostSessions.greet(session);
    checkFrames(upgrade.socket, session);
    readFrames(socket, session);
    socket.on('close', () => session.ended());
    session.start();
    // Checks the session again, because the host might have been revoked after its upgrade was authenticated.
    session.tick();
  }

  #sessionOf({ caller, requestId, traceId, ip }: ClientUpgrade, socket: WebSocket): HostSession {
    const { hostStore, membership, feed, platformServices, authenticator, socketCutOff, hostSessions } =
      this.#services;
    const { random, clock, logger } = this.#kit;
    return new HostSession({
      sessionId: `session_${random.uuid()}`,
      wire: wireOf(socket),
      principal: caller,
      store: hostStore,
      owner: () => membership.require(),
      spread: () => feed.spread(),
      services: platformServices,
      clock,
      logger: logger.child({ requestId, traceId, tenantId: caller.namespaceId }),
      authenticate: async (accessToken) =>
        authenticator.authenticate({
          rawHeaders: ['authorization', `Bearer ${accessToken}`],
          requestId,
          traceId,
          ip,
        }),
      isRevoked: socketCutOff.isRevoked,
      onOpen: (opened) => hostSessions.adopt(opened),
      onClosed: (closed) => hostSessions.remove(closed),
    });
  }
}

function refusePlainRequests(http: Http): void {
  http.get(HOST_SOCKET.path, {
    async onRequest(request) {
      request.caller = await http.kit.authenticate(request);
      throw new PlatformError(
        'UPGRADE_REQUIRED',
        'Hosts connect here by WebSocket; this is a plain request.',
        {
          headers: { upgrade: 'websocket', connection: 'upgrade', 'sec-websocket-version': '13' },
        },
      );
    },
    handler: () => {
      throw new Error('onRequest refuses every request.');
    },
  });
}

function wireOf(socket: WebSocket): Wire {
  return {
    send: (text, onSent) => socket.send(text, onSent),
    close(code, reason) {
      socket.close(code, reason);
      // Terminates the connection after a timeout, because the agent might never read the close frame.
      systemClock.after(CLOSE_TIMEOUT_MS, () => socket.terminate());
    },
    get bufferedBytes() {
      return socket.bufferedAmount;
    },
  };
}

/** Closes the session if a frame encodes its length in more bytes than needed. The ws package accepts such frames. */
function checkFrames(socket: ClientUpgrade['socket'], session: HostSession): void {
  const boundary = new FrameBoundary(HOST_SOCKET.messageBytes);
  const check = (chunk: Buffer): void => {
    const fault = boundary.push(chunk);
    if (!fault) return;
    socket.off('data', check);
    session.close(fault.code, fault.reason);
  };
  // This listener must run before the listener of ws, which would handle the frame first.
  socket.prependListener('data', check);
}

function readFrames(socket: WebSocket, session: HostSession): void {
  const frames = createTokenBucket(systemClock, RATE.framesPerSecond, RATE.frames);
  const bytes = createTokenBucket(systemClock, RATE.bytesPerSecond, RATE.bytes);
  const time = createTokenBucket(systemClock, TIME.msPerSecond, TIME.ms);
  let cancelResume = (): void => {};
  // After a protocol error, the `ws` package closes the connection with code 1002, 1007 or 1009.
  socket.on('error', () => {});
  socket.on('message', (data: RawData, isBinary: boolean) => {
    if (isBinary) return session.close(HOST_CLOSE.binary, 'frames are text');
    const text = (data as Buffer).toString('utf8');
    const startedAt = performance.now();
    session.receive(text);
    const tookMs = performance.now() - startedAt;
    const waitMs = Math.max(frames.spend(1), bytes.spend(text.length), time.spend(tookMs));
    if (waitMs === 0) return;
    // Messages that were already read are still delivered after `pause()`. Each of these messages restarts the pause.
    cancelResume();
    socket.pause();
    cancelResume = systemClock.after(waitMs, () => socket.resume());
  });
}
