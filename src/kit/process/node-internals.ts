/**
 * All uses of Node internals, each with its reason. `test/kit/process/node-internals.test.ts` checks each use against
 * the running Node version.
 */
import type { ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

interface WithHandle {
  _handle?: object | null;
}

export interface ListeningHandle {
  close(): void;
}

/**
 * Returns the native handle of a listening server, for `listen({ handle })` in another process. If the whole server
 * were sent instead, the receiver would accept connections at once.
 */
export function listeningHandle(server: Server): ListeningHandle | undefined {
  return (server as { _handle?: ListeningHandle | null })._handle ?? undefined;
}

/**
 * Returns the prototype of native pipes if the socket is a native pipe, and undefined for other sockets. All clients of
 * named pipes use the prototype's `connect` method, which can be replaced to enforce the permissions of plugin code.
 */
export function pipePrototype(socket: Socket): Record<string, unknown> | undefined {
  const handle = (socket as WithHandle)._handle;
  return handle?.constructor.name === 'Pipe' ? Object.getPrototypeOf(handle) : undefined;
}

/** Methods of a native pipe that open a connection. Older versions of Node lack the second method. */
export const PIPE_CONNECT_METHODS = ['connect', 'connect2'] as const;

/** Methods of `process` that send signals. `_kill` is the native function that the public `kill` calls. */
export const KILL_METHODS = ['kill', '_kill'] as const;

/**
 * Returns the classes of native objects that a Node object stores under symbols. A sandbox must restrict their static
 * methods, because these methods give access to functions that a module exports.
 */
export function nativeClassesIn(object: object): object[] {
  return Object.getOwnPropertySymbols(object).flatMap((symbol) => {
    const native = (object as Record<symbol, { constructor?: object } | null | undefined>)[symbol];
    return native?.constructor ?? [];
  });
}

interface WithResponse {
  _httpMessage?: (ServerResponse & { _headerSent: boolean }) | null;
}

/** Returns the response that is pending on the socket. The public API would need a listener for each request. */
export function pendingResponse(socket: Duplex): ServerResponse | undefined {
  return (socket as WithResponse)._httpMessage ?? undefined;
}

/**
 * Keeps half-closed connections open until the pending response is sent. By default, Node closes a connection without
 * sending the response if the client has ended its side.
 */
export function answerHalfClosed(server: Server): void {
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
}

/**
 * Returns true if bytes of a response have been written to the socket. Node uses the same check before it answers
 * malformed requests itself. `headersSent` would also be true for headers that are still buffered.
 */
export function hasBegunResponse(socket: Socket): boolean {
  return (socket as WithResponse)._httpMessage?._headerSent === true;
}
