import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { messageOf } from '../failure.ts';
import type { McpCall } from './mcp-call.ts';
import { TunnelSocket } from './tunnel-socket.ts';

/**
 * HTTP proxy on the loopback interface of the sandbox, which has no other network. Connections go through the platform,
 * which allows the hosts of the manifest only, and end with the call on whose behalf they were opened.
 */
export class EgressProxy {
  readonly env: Record<string, string>;

  private constructor(port: number) {
    const url = `http://127.0.0.1:${port}`;
    this.env = {
      HTTP_PROXY: url,
      HTTPS_PROXY: url,
      http_proxy: url,
      https_proxy: url,
      NODE_USE_ENV_PROXY: '1',
    };
  }

  static async listen(current: () => McpCall | undefined): Promise<EgressProxy> {
    const server = createServer((request, response) => void forward(request, response, current()));
    server.on('connect', (request, client) => void tunnel(request.url ?? '', client, current()));
    server.on('clientError', (_error, socket) => void socket.destroy());
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    server.unref();
    return new EgressProxy((server.address() as AddressInfo).port);
  }
}

async function tunnel(target: string, client: Duplex, call: McpCall | undefined): Promise<void> {
  client.on('error', () => {});
  try {
    const { hostname, port } = new URL(`https://${target}`);
    const upstream = await open(call, hostname, Number(port || 443));
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    pipeline(client, upstream, client, () => {});
  } catch (error) {
    client.end(`HTTP/1.1 403 Forbidden\r\n\r\n${messageOf(error)}`);
  }
}

async function forward(request: IncomingMessage, response: ServerResponse, call: McpCall | undefined) {
  try {
    const url = new URL(request.url ?? '');
    const socket = await open(call, url.hostname, Number(url.port || 80));
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

function refuse(response: ServerResponse, error: unknown): void {
  if (!response.headersSent) response.writeHead(403, { 'content-type': 'text/plain' });
  response.end(messageOf(error));
}

async function open(call: McpCall | undefined, host: string, port: number): Promise<TunnelSocket> {
  if (!call) throw new Error('The network is available during calls only.');
  const { executionId } = call.context;
  const platform = (method: string, ...args: unknown[]) =>
    call.calls.call(executionId, 'tunnel', method, args);
  return new TunnelSocket((await platform('open', host, port)) as number, platform);
}
