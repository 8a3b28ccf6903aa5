import { request } from 'node:http';
import { connect } from 'node:net';

export interface RawReply {
  status: number;
  reply: Record<string, string | string[] | undefined>;
  body: string;
}

/** A GET with exactly these headers, repeated ones included: fetch would merge them. */
export function rawGet(
  target: { url: string },
  path: string,
  headers: [string, string][],
): Promise<RawReply> {
  const { port, hostname } = new URL(target.url);
  const flat = [...headers.flat(), 'host', `${hostname}:${port}`];
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, hostname, path, headers: flat, agent: false }, (incoming) => {
      let body = '';
      incoming.setEncoding('utf8').on('data', (text) => {
        body += text;
      });
      incoming.on('end', () => resolve({ status: incoming.statusCode!, reply: incoming.headers, body }));
    });
    outgoing.on('error', reject).end();
  });
}

/** How long a busy machine may take over the first byte. */
const PATIENCE_MS = 20_000;

/** Sends bytes as they are and returns all that comes back until the other side closes, or until `quietMs` of silence after it. */
export function exchangeBytes(
  target: { url: string } | { path: string },
  text: string,
  quietMs = 300,
): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect('path' in target ? target : addressOf(target.url));
    socket.on('connect', () => socket.write(text, 'latin1'));
    const done = (): void => {
      socket.destroy();
      resolve(received);
    };
    socket.setTimeout(PATIENCE_MS, done);
    socket.setEncoding('latin1').on('data', (chunk) => {
      socket.setTimeout(quietMs);
      received += chunk;
    });
    socket.on('close', done).on('error', done);
  });
}

function addressOf(url: string): { port: number; host: string } {
  const { port, hostname } = new URL(url);
  return { port: Number(port), host: hostname };
}
