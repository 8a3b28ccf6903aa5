import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Http, refuseUpgrade } from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors/errors.ts';
import { takeUnread } from '../../group/hand-over.ts';
import type { ProcessGroup } from '../../group/process-group.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { ClientUpgrade, UpgradeHandler } from '../proxy/client-upgrade.ts';

const TOPIC = 'socket';

export interface HandedSocketsServices {
  group: ProcessGroup;
  ownSockets: Map<string, UpgradeHandler>;
}

/** The data of an upgrade that is sent to the primary process together with the socket. */
interface HandedUpgrade extends Omit<ClientUpgrade, 'request' | 'socket' | 'head' | 'caller'> {
  path: string;
  url: string;
  headers: IncomingMessage['headers'];
  rawHeaders: string[];
  /** Bytes that arrived after the request, encoded as base64. */
  head: string;
  /** `expiresAt` is null if the token never expires, because JSON has no Infinity. */
  caller: Omit<Principal, 'expiresAt'> & { expiresAt: number | null };
}

/**
 * Passes the gateway's own WebSockets to the primary process, which serves all of them. Other processes authenticate
 * the upgrade and then send the connection. Must be mounted after the routes of those WebSockets.
 */
export function handedSocketRoutes(_http: Http, { group, ownSockets }: HandedSocketsServices): void {
  if (group.role === 'primary') {
    group.answer(TOPIC, (body, _from, socket) => take(body as HandedUpgrade, socket, ownSockets));
  } else if (group.role === 'sibling') {
    for (const path of ownSockets.keys()) {
      ownSockets.set(path, async (upgrade) => {
        const { handed, socket } = packed(path, upgrade);
        await group.primary.call(TOPIC, handed, { socket });
      });
    }
  }
}

function packed(path: string, upgrade: ClientUpgrade): { handed: HandedUpgrade; socket: Socket } {
  const { request, head, caller, requestId, traceId, spanId, ip } = upgrade;
  const socket = upgrade.socket as Socket;
  // Bytes that arrived during authentication. The primary process reads all later ones.
  const more = takeUnread(socket);
  const handed: HandedUpgrade = {
    path,
    url: request.url ?? path,
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    head: Buffer.concat([head, more]).toString('base64'),
    caller: { ...caller, expiresAt: Number.isFinite(caller.expiresAt) ? caller.expiresAt : null },
    requestId,
    traceId,
    spanId,
    ip,
  };
  return { handed, socket };
}

/**
 * Serves a received upgrade. Sends errors to the client, and rethrows them to the sending process, which counts them.
 */
async function take(
  { path, url, headers, rawHeaders, head, caller, ...ids }: HandedUpgrade,
  socket: Socket | undefined,
  ownSockets: ReadonlyMap<string, UpgradeHandler>,
): Promise<void> {
  // The client disconnected while the socket was being transferred.
  if (!socket) return;
  socket.on('error', () => socket.destroy());
  const request = new IncomingMessage(socket);
  Object.assign(request, { method: 'GET', url, headers, rawHeaders, httpVersion: '1.1' });
  try {
    const serve = ownSockets.get(path);
    if (!serve) throw new PlatformError('NOT_FOUND', `There is no WebSocket at ${path}.`);
    await serve({
      ...ids,
      request,
      socket,
      head: Buffer.from(head, 'base64'),
      caller: { ...caller, expiresAt: caller.expiresAt ?? Number.POSITIVE_INFINITY },
    });
  } catch (error) {
    refuseUpgrade(socket, toPlatformError(error), ids.requestId);
    throw error;
  }
}
