import { lookup } from 'node:dns';
import { connect, type LookupFunction, type Socket } from 'node:net';
import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { literalAddress } from './addresses.ts';
import { invalid } from './arguments.ts';
import { checkedLookup, refuseLocalServices, refusePrivateAddress } from './guarded-dispatcher.ts';
import { requireHost } from './network-permission.ts';
import type { Resolve } from './resolve.ts';

/** Connections of one execution at a time. */
const MAX_TUNNELS = 16;
const MAX_CHUNK_BYTES = 256 * 1024;
const CONNECT_MS = 10_000;
const IDLE_MS = 120_000;

export interface TunnelOptions {
  resolve?: Resolve;
  /** Host names for which the operator allows private addresses. */
  privateHosts?: readonly string[];
}

/**
 * Creates the service through which programs of a plugin reach the hosts of its manifest: TCP connections by the rules
 * of `ctx.fetch`. They end with the execution that opened them. @spec docs/mcp-servers.md "What confines it"
 */
export function createTunnelService(options: TunnelOptions = {}): PlatformService {
  const all = new WeakMap<AbortSignal, Tunnels>();
  const of = ({ signal }: PlatformCallContext): Tunnels => {
    const tunnels = all.get(signal) ?? new Tunnels(signal);
    all.set(signal, tunnels);
    return tunnels;
  };
  return {
    open: (context, [host, port]) => of(context).open(context, host, port, options),
    read: (context, [id]) => of(context).read(id),
    write: (context, [id, data]) => of(context).write(id, data),
    end: async (context, [id]) => void of(context).socket(id).end(),
    close: async (context, [id]) => of(context).close(id),
  };
}

/** The connections of one execution. */
class Tunnels {
  readonly #sockets = new Map<number, Socket>();
  #lastId = 0;

  constructor(signal: AbortSignal) {
    signal.addEventListener('abort', () => this.#closeAll(), { once: true });
  }

  async open(
    { request, signal }: PlatformCallContext,
    host: unknown,
    port: unknown,
    { resolve = lookup, privateHosts = [] }: TunnelOptions,
  ): Promise<number> {
    // Other plugins have `ctx.fetch`, which sends nothing but HTTP.
    if (request.permissions.platform?.childProcess !== 'sandboxed')
      throw new PlatformError(
        'PERMISSION_DENIED',
        `The plugin ${request.plugin.id} may not open connections: only confined programs may.`,
        { details: { permission: 'permissions.platform.childProcess' } },
      );
    if (typeof host !== 'string' || typeof port !== 'number' || !URL.canParse(`https://${host}:${port}`))
      throw invalid('a connection needs a host and a port');
    const url = new URL(`https://${host}:${port}`);
    const { mayBePrivate } = requireHost(url, request.permissions.network, privateHosts);
    const check = mayBePrivate ? refuseLocalServices : refusePrivateAddress;
    const literal = literalAddress(url.hostname);
    if (literal !== null) check(url.hostname, literal);
    if (this.#sockets.size >= MAX_TUNNELS)
      throw new PlatformError('SERVICE_UNAVAILABLE', `The call has ${MAX_TUNNELS} connections already.`);
    const id = ++this.#lastId;
    const socket = connect({
      host: literal ?? url.hostname,
      port,
      lookup: checkedLookup(resolve, check) as LookupFunction,
    });
    this.#sockets.set(id, socket);
    socket.pause();
    try {
      await connected(socket, host);
    } catch (error) {
      this.close(id);
      throw error;
    }
    if (signal.aborted) this.#closeAll();
    return id;
  }

  /** Resolves with the next bytes as base64, or null at the end. */
  async read(id: unknown): Promise<string | null> {
    const socket = this.socket(id);
    while (true) {
      const chunk = socket.read() as Buffer | null;
      if (chunk) {
        if (chunk.length > MAX_CHUNK_BYTES) socket.unshift(chunk.subarray(MAX_CHUNK_BYTES));
        return chunk.subarray(0, MAX_CHUNK_BYTES).toString('base64');
      }
      if (socket.readableEnded || socket.destroyed) return null;
      await readable(socket);
    }
  }

  async write(id: unknown, data: unknown): Promise<void> {
    if (typeof data !== 'string') throw invalid('the data of a connection must be base64');
    const socket = this.socket(id);
    const bytes = Buffer.from(data, 'base64');
    await new Promise<void>((resolve, reject) =>
      socket.write(bytes, (error) => (error ? reject(unavailable(error)) : resolve())),
    );
  }

  socket(id: unknown): Socket {
    const socket = typeof id === 'number' ? this.#sockets.get(id) : undefined;
    if (!socket) throw new PlatformError('NOT_FOUND', 'The connection is closed.');
    return socket;
  }

  close(id: unknown): void {
    if (typeof id !== 'number') return;
    this.#sockets.get(id)?.destroy();
    this.#sockets.delete(id);
  }

  #closeAll(): void {
    for (const id of this.#sockets.keys()) this.close(id);
  }
}

function connected(socket: Socket, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error(`no answer within ${CONNECT_MS} ms`)));
    socket.once('connect', () => {
      socket.setTimeout(IDLE_MS, () => socket.destroy());
      socket.on('error', () => {});
      resolve();
    });
    socket.once('error', (error) =>
      reject(error instanceof PlatformError ? error : unavailable(error, host)),
    );
  });
}

function readable(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of ['readable', 'end', 'close']) socket.off(event, done);
      resolve();
    };
    for (const event of ['readable', 'end', 'close']) socket.on(event, done);
  });
}

function unavailable(error: unknown, host = 'the host'): PlatformError {
  return new PlatformError('UPSTREAM_UNAVAILABLE', `The connection to ${host} failed: ${messageOf(error)}.`);
}
