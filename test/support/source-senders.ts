import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AnyJson } from './any-json.ts';
import { atEnd } from './at-end.ts';

export interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  body: Buffer;
}

export interface Receiver {
  url: string;
  received: Received[];
  /** Answer to the next requests. Default: 200 with "thanks". */
  answer: (request: Received) => Answer | Promise<Answer>;
}

interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}

/** An HTTP server on loopback that records what it receives, as an app would. */
export async function startReceiver(): Promise<Receiver> {
  const receiver: Receiver = { url: '', received: [], answer: () => ({ status: 200, body: 'thanks' }) };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers, rawHeaders } = request;
    const received = { method, url, headers, rawHeaders, body: Buffer.concat(chunks) };
    receiver.received.push(received);
    const { status, headers: sent = {}, body = '' } = await receiver.answer(received);
    response.writeHead(status, sent).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return receiver;
}

export const githubSignature = (secret: string, body: string | Buffer): Record<string, string> => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
});

/** Sends a request to a source and returns the answer. */
export async function send(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: AnyJson; headers: Headers }> {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const response = await fetch(url, {
    method: 'POST',
    body: text,
    headers: { 'content-type': 'application/json', ...headers },
  });
  const answer = await response.text();
  return {
    status: response.status,
    body: answer === '' ? null : JSON.parse(answer),
    headers: response.headers,
  };
}

/** Sends an event as GitHub does. */
export function sendAsGitHub(url: string, secret: string, payload: unknown, id: string, event = 'push') {
  const body = JSON.stringify(payload);
  const own = { 'x-github-event': event, 'x-github-delivery': id, 'user-agent': 'GitHub-Hookshot/1' };
  return send(url, body, { ...own, ...githubSignature(secret, body) });
}
