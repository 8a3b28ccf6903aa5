import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface SeenRequest {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  rawHeaders: string[];
  body: string;
}

export interface EchoUpstream {
  url: string;
  server: Server;
  /** Every request that reached it. */
  seen: SeenRequest[];
}

/** A plain HTTP server behind the gateway: remembers what reaches it and answers with that, or as `answer` says. */
export async function startUpstream(
  answer?: (req: IncomingMessage, res: ServerResponse, body: string) => void,
): Promise<EchoUpstream> {
  const seen: SeenRequest[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const request = {
        method: req.method!,
        url: req.url!,
        headers: req.headers,
        rawHeaders: req.rawHeaders,
        body,
      };
      seen.push(request);
      if (answer) answer(req, res, body);
      else res.setHeader('content-type', 'application/json').end(JSON.stringify(request));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, seen };
}
