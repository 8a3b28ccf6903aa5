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
 * Returns the native handle of a listening server, for `listen({ handle })` in another process. A process that received
 * the whole server would accept connections at once.
 */
export function listeningHandle(server: Server): ListeningHandle | undefined {
  return (server as { _handle?: ListeningHandle | null })._handle ?? undefined;
}

/**
 * Returns the prototype of native pipes, or undefined if the socket is not a native pipe. Replacing `connect` on the
 * prototype restricts all clients of named pipes.
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
 * Returns the classes of native objects that a Node object stores under symbols. Plugin code can reach the static
 * methods of these classes, so a sandbox must restrict these methods too.
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

/** Returns the pending response of the socket. The public API would need a listener for each request. */
export function pendingResponse(socket: Duplex): ServerResponse | undefined {
  return (socket as WithResponse)._httpMessage ?? undefined;
}

/**
 * Keeps half-closed connections open until the pending response is sent. By default, Node closes such a connection
 * without sending the response.
 */
export function answerHalfClosed(server: Server): void {
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
}

/**
 * Returns whether bytes of a response have been written to the socket. `headersSent` is also true for headers that are
 * still buffered.
 */
export function hasBegunResponse(socket: Socket): boolean {
  return (socket as WithResponse)._httpMessage?._headerSent === true;
}
