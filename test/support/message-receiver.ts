import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ReceivedMessage {
  id: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  receivedAt: number;
}

export interface MessageReceiver {
  url: string;
  port: number;
  received: ReceivedMessage[];
  /** Ids in the order of their receipt. */
  ids(): string[];
  /** Answers the requests; 200 by default. */
  answer(respond: (message: ReceivedMessage, response: ServerResponse) => void): void;
}

/** A server on loopback that records the messages it receives. Closed when the test ends. */
export async function startReceiver(): Promise<MessageReceiver> {
  const received: ReceivedMessage[] = [];
  let respond = (_message: ReceivedMessage, response: ServerResponse): void => void response.end();
  const server = createServer((request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const message = {
        ...{ id: String(request.headers['webhook-id']), path: request.url ?? '', headers: request.headers },
        ...{ body: Buffer.concat(chunks).toString(), receivedAt: performance.now() },
      };
      received.push(message);
      respond(message, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    ...{ url: `http://127.0.0.1:${port}/hook`, port, received },
    ids: () => received.map(({ id }) => id),
    answer(next) {
      respond = next;
    },
  };
}

/** Answers with a status. */
export const withStatus =
  (status: number, headers: Record<string, string> = {}) =>
  (_message: ReceivedMessage, response: ServerResponse): void => {
    response.writeHead(status, headers).end(`answer ${status}`);
  };
