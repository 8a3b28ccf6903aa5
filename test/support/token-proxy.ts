import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { atEnd } from './at-end.ts';

/**
 * Starts a proxy on this machine that adds a token to each request and changes nothing else, for programs that cannot
 * send one. `beforeSending` receives the body of each request before it is forwarded. Returns its URL.
 */
export async function startTokenProxy(
  target: string,
  token: string,
  beforeSending: (body: string) => Promise<void> = async () => {},
): Promise<string> {
  const { hostname, port } = new URL(target);
  const server = createServer(async (incoming, outgoing) => {
    const body = await text(incoming).catch(() => '');
    await beforeSending(body);
    const { method, url: path } = incoming;
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    const sent = request({ hostname, port, method, path, headers, agent: false });
    sent.on('response', (reply) => {
      outgoing.writeHead(reply.statusCode!, reply.headers);
      outgoing.flushHeaders();
      reply.on('error', () => outgoing.destroy());
      reply.pipe(outgoing);
    });
    sent.on('error', () => outgoing.destroy());
    outgoing.on('close', () => sent.destroy());
    sent.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}
