import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { messageOf, PlatformCallError, RunnerFailure } from '../failure.ts';
import type { McpCall } from './mcp-call.ts';
import { TunnelSocket } from './tunnel-socket.ts';

/** A socket, or an HTTP response. */
interface Connection {
  readonly destroyed: boolean;
  destroy(): unknown;
  once(event: 'close', listener: () => void): unknown;
}

/**
 * HTTP proxy on the loopback interface of the sandbox, which has no other network. Connections go through the platform,
 * which allows the hosts of the manifest only, and end with the call on whose behalf they were opened.
 */
export class EgressProxy {
  readonly #current: () => McpCall | undefined;
  readonly #connections = new WeakMap<McpCall, Set<Connection>>();
  #env: Promise<Record<string, string>> | undefined;

  /** `current` returns the call on whose behalf new connections are opened. */
  constructor(current: () => McpCall | undefined) {
    this.#current = current;
  }

  /** Returns the variables by which programs find the proxy. Listens on first use. */
  env(): Promise<Record<string, string>> {
    this.#env ??= this.#listen().catch((error: unknown) => {
      // The next start of the server tries again.
      this.#env = undefined;
      throw error;
    });
    return this.#env;
  }

  /**
   * Closes the connections of a call. Must be called while the call can still reach the platform. Otherwise, programs
   * keep connections open that fail on their next use.
   */
  closeConnections(call: McpCall): void {
    for (const connection of this.#connections.get(call) ?? []) connection.destroy();
  }

  async #listen(): Promise<Record<string, string>> {
    const server = createServer((request, response) => void this.#forward(request, response));
    server.on('connect', (request, client, head) => void this.#tunnel(request.url ?? '', client, head));
    server.on('clientError', (_error, socket) => void socket.destroy());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    server.unref();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { HTTP_PROXY: url, HTTPS_PROXY: url, http_proxy: url, https_proxy: url, NODE_USE_ENV_PROXY: '1' };
  }

  async #tunnel(target: string, client: Duplex, head: Buffer): Promise<void> {
    client.on('error', () => {});
    try {
      const { hostname, port } = new URL(`https://${target}`);
      const upstream = await this.#open(client, hostname, Number(port || 443));
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (head.length > 0) client.unshift(head);
      pipeline(client, upstream, client, () => {});
    } catch (error) {
      const [status, reason] = refusalOf(error);
      client.end(`HTTP/1.1 ${status} ${reason}\r\n\r\n${messageOf(error)}`);
    }
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = new URL(request.url ?? '');
      const socket = await this.#open(response, url.hostname, Number(url.port || 80));
      const { 'proxy-connection': _, 'proxy-authorization': __, ...headers } = request.headers;
      const sent = httpRequest({
        ...{ method: request.method, path: `${url.pathname}${url.search}` },
        headers: { ...headers, host: url.host, connection: 'close' },
        createConnection: () => socket as never,
      });
      sent.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        pipeline(answer, response, () => {});
      });
      sent.on('error', (error) => refuse(response, error));
      pipeline(request, sent, () => {});
    } catch (error) {
      refuse(response, error);
    }
  }

  /** Opens a connection for a client. Both end with the call. */
  async #open(client: Connection, host: string, port: number): Promise<TunnelSocket> {
    const call = this.#current();
    if (!call) throw new RunnerFailure('PERMISSION_DENIED', 'The network is available during calls only.');
    this.#add(call, client);
    const { executionId } = call.context;
    const platform = (method: string, ...args: unknown[]) =>
      call.calls.call(executionId, 'tunnel', method, args);
    const upstream = new TunnelSocket((await platform('open', host, port)) as number, platform);
    // The client can have ended in the meantime, for example with the call.
    if (client.destroyed) upstream.destroy();
    this.#add(call, upstream);
    return upstream;
  }

  #add(call: McpCall, connection: Connection): void {
    const connections = this.#connections.get(call) ?? new Set();
    this.#connections.set(call, connections.add(connection));
    connection.once('close', () => connections.delete(connection));
  }
}

function refuse(response: ServerResponse, error: unknown): void {
  // The text of the error must not become part of a body that has begun.
  if (response.headersSent) return void response.destroy();
  response.writeHead(refusalOf(error)[0], { 'content-type': 'text/plain' }).end(messageOf(error));
}

/** Returns the status of a connection that is not allowed, or that failed. */
function refusalOf(error: unknown): [status: number, reason: string] {
  const isKnown = error instanceof PlatformCallError || error instanceof RunnerFailure;
  return isKnown && error.code === 'PERMISSION_DENIED' ? [403, 'Forbidden'] : [502, 'Bad Gateway'];
}
