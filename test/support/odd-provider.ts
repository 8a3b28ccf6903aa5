import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { OutgoingClient } from '../../src/daemons/outgoing/outgoing-client.ts';
import { atEnd } from './at-end.ts';

export interface OddRequest {
  path: string;
  accept: string | undefined;
  authorization: string | undefined;
  form: URLSearchParams;
}

/** Answers of a token endpoint: fields, with the status and the form in which the provider sends them. */
export interface OddAnswer {
  status?: number;
  fields: Record<string, unknown>;
}

/**
 * A token endpoint on loopback that answers as GitHub or Slack does. GitHub answers with a form unless the client
 * accepts JSON; both answer errors with status 200. `send` leads requests for the provider's host here.
 */
export async function startOddProvider(host: string) {
  const requests: OddRequest[] = [];
  const answers: OddAnswer[] = [];
  let respond: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { accept, authorization } = request.headers;
      const form = new URLSearchParams(Buffer.concat(chunks).toString());
      requests.push({ path: request.url!, accept, authorization, form });
      if (respond) return respond(request, response);
      const { status = 200, fields } = answers.shift() ?? { status: 500, fields: {} };
      const isJson = host !== 'github.com' || accept?.includes('application/json') === true;
      const text = isJson ? JSON.stringify(fields) : String(new URLSearchParams(fields as never));
      const type = isJson
        ? 'application/json; charset=utf-8'
        : 'application/x-www-form-urlencoded; charset=utf-8';
      response.writeHead(status, { 'content-type': type }).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const outgoing = new OutgoingClient({ allowedHosts: ['127.0.0.1'], setting: 'outgoing.allow' });
  atEnd(async () => {
    await outgoing.close();
    server.closeAllConnections();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    requests,
    /** Answers of the next requests, in order. */
    next: (...more: OddAnswer[]) => void answers.push(...more),
    respond: (by: typeof respond) => {
      respond = by;
    },
    outgoing: {
      send: ((request) =>
        outgoing.send({
          ...request,
          url: request.url.replace(`https://${host}`, origin),
        })) as OutgoingClient['send'],
    },
  };
}
