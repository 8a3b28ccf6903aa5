import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Receiver {
  url: string;
  requests: Received[];
  /** Status of the answers from now on, by path; 200 for others. */
  answers: Map<string, number>;
  close(): Promise<void>;
}

/** Receiver of messages on a free local port. */
export async function startReceiver(): Promise<Receiver> {
  const requests: Received[] = [];
  const answers = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url ?? '';
    requests.push({ path, headers: request.headers, body: Buffer.concat(chunks).toString() });
    const status = answers.get(path) ?? 200;
    response.writeHead(status).end(status === 200 ? 'taken' : 'this receiver is broken');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answers,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
