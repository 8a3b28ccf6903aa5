import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ServiceName } from '../contracts/index.ts';
import { errorBody, PlatformError, toPlatformError } from '../kit/errors/errors.ts';
import { CONTROL, type SupervisorStatus } from './control-protocol.ts';
import type { DataFolder } from './data-folder.ts';
import { nodeHttp } from './node-http.ts';

/** Maximum length of a unix socket path, including its final zero byte. Linux allows 108 bytes, macOS 104. */
const MAX_SOCKET_PATH_BYTES = 104;

export interface ControlActions {
  status(): Promise<SupervisorStatus>;
  /** Resolves when all services have stopped. */
  stop(): Promise<void>;
  /** Restarts one service, or all services if `name` is null. Resolves when the restarted services are ready. */
  restart(name: ServiceName | null): Promise<void>;
}

export interface ControlServer {
  socket: string;
  close(): Promise<void>;
}

/** Serves control requests on a unix socket that only the user of this process can access. */
export async function startControlServer(
  folder: DataFolder,
  actions: ControlActions,
): Promise<ControlServer> {
  const socket = socketPath(folder);
  const server = nodeHttp().createServer((request, response) => void handle(request, response, actions));
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

/**
 * Returns the path of the control socket. If the path in `run/` is too long for a socket, the socket is in a private
 * temporary folder.
 */
function socketPath(folder: DataFolder): string {
  const preferred = join(folder.run, 'control.sock');
  if (Buffer.byteLength(preferred) < MAX_SOCKET_PATH_BYTES) return preferred;
  return join(mkdtempSync(join(tmpdir(), 'svc-')), 'control.sock');
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  actions: ControlActions,
): Promise<void> {
  try {
    send(response, 200, await dispatch(request, actions));
  } catch (error) {
    const failure = toPlatformError(error);
    send(response, failure.status, errorBody(failure));
  }
}

async function dispatch(request: IncomingMessage, actions: ControlActions): Promise<unknown> {
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
      throw new PlatformError('NOT_FOUND', `The supervisor does not support ${request.method} ${pathname}.`);
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(body));
}
