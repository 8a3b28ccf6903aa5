import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ServiceName } from '../../contracts/index.ts';
import { errorBody, PlatformError, toPlatformError } from '../../kit/errors.ts';
import { CONTROL, type SupervisorStatus } from './control-protocol.ts';
import type { DataFolder } from './data-folder.ts';
import { nodeHttp } from './node-http.ts';

/** Bytes of a unix socket's address, the closing zero included: 108 on Linux, 104 on macOS. */
const ADDRESS_BYTES = 104;

export interface ControlActions {
  status(): Promise<SupervisorStatus>;
  /** Resolves when every daemon has stopped. */
  stop(): Promise<void>;
  /** Without a name: all of them. Resolves when they are ready again. */
  restart(name: ServiceName | null): Promise<void>;
}

export interface ControlServer {
  /** The socket's path. */
  socket: string;
  close(): Promise<void>;
}

/** Serves the commands of this machine's user. The folder is what guards it: 0700, like the socket in it. */
export async function startControlServer(
  folder: DataFolder,
  actions: ControlActions,
): Promise<ControlServer> {
  const socket = socketPath(folder);
  const server = nodeHttp().createServer((request, response) => void answer(request, response, actions));
  rmSync(socket, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socket, resolve);
  });
  chmodSync(socket, 0o600);
  return {
    socket,
    async close() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
      if (!socket.startsWith(folder.root)) rmSync(dirname(socket), { recursive: true, force: true });
    },
  };
}

/** Beside the run file where its path is short enough, else in a private folder of its own; the run file tells which. */
function socketPath(folder: DataFolder): string {
  const preferred = join(folder.run, 'control.sock');
  if (Buffer.byteLength(preferred) < ADDRESS_BYTES) return preferred;
  return join(mkdtempSync(join(tmpdir(), 'svc-')), 'control.sock');
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  actions: ControlActions,
): Promise<void> {
  try {
    send(response, 200, await act(request, actions));
  } catch (error) {
    const failure = toPlatformError(error);
    send(response, failure.status, errorBody(failure));
  }
}

async function act(request: IncomingMessage, actions: ControlActions): Promise<unknown> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://control');
  switch (`${request.method} ${pathname}`) {
    case `GET ${CONTROL.status}`:
      return actions.status();
    case `POST ${CONTROL.stop}`:
      await actions.stop();
      return actions.status();
    case `POST ${CONTROL.restart}`: {
      const name = searchParams.get('service');
      await actions.restart(name === null ? null : ServiceName.parse(name));
      return actions.status();
    }
    default:
      throw new PlatformError('NOT_FOUND', `The supervisor has no ${request.method} ${pathname}.`);
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(body));
}
