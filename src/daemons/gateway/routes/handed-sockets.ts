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

/** An upgrade request as JSON, sent to the primary process together with the socket. */
interface HandedUpgrade extends Omit<ClientUpgrade, 'request' | 'socket' | 'head' | 'caller'> {
  path: string;
  url: string;
  headers: IncomingMessage['headers'];
  rawHeaders: string[];
  /** Bytes of the WebSocket stream that were already read, encoded as base64. */
  head: string;
  /** `expiresAt` is null for a token that never expires, because JSON cannot represent Infinity. */
  caller: Omit<Principal, 'expiresAt'> & { expiresAt: number | null };
}

/**
 * Lets the primary process serve all WebSockets of the gateway itself. The other processes authenticate the upgrade and
 * then send the connection to the primary. Must be mounted after the routes that fill `ownSockets`.
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
  // The primary process cannot read bytes that arrived during authentication, so the bytes are sent along with the
  // socket.
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
 * Serves an upgrade that another process sent. Errors are sent to the client, and to the other process, which logs
 * them.
 */
async function take(
  { path, url, headers, rawHeaders, head, caller, ...ids }: HandedUpgrade,
  socket: Socket | undefined,
  ownSockets: ReadonlyMap<string, UpgradeHandler>,
): Promise<void> {
  // There is no socket if the client disconnected during the transfer.
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
