import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ExecutionRequest, LIMITS } from '../../contracts/index.ts';
import { keepProtocolAlone, SERVER_LIMITS, sendRawError } from '../../http/index.ts';
import { PlatformError, toPlatformError } from '../../kit/errors/errors.ts';
import { safeEqual } from '../../kit/security/keys.ts';
import type { Random } from '../../kit/security/random.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { saneId } from '../../kit/telemetry/trace.ts';
import type { PortShare } from '../process-protocol.ts';
import { requireCallbackRight } from './domain/hosts/callback-rights.ts';

/**
 * Maximum length of a Unix socket address in bytes, including the terminating NUL byte. The value is the limit of
 * macOS, because the limit of Linux (108) is higher.
 */
const MAX_ADDRESS_BYTES = 104;
const MAX_CONNECTIONS = 32;
const HEALTH = new Set(['/health', '/api/v1/health']);

export interface ContainerSocket {
  /** Path of the socket on this machine. */
  path: string;
  /** Closes all connections and removes the socket file. */
  close(): void;
}

export interface ContainerSocketsDeps {
  dataDir: string;
  portShare?: PortShare | undefined;
  random: Random;
  logger: Logger;
}

/**
 * Creates one Unix socket per container, because containers cannot reach the gateway's loopback port. A socket accepts
 * only the token of its own execution. @spec Authentication 7; Container execution JWT
 */
export class ContainerSockets {
  readonly #deps: ContainerSocketsDeps;
  #folder: string | undefined;
  #opened = 0;
  #gateway: Server | undefined;

  constructor(deps: ContainerSocketsDeps) {
    this.#deps = deps;
  }

  /** Sets the server that handles requests after the token check. */
  forwardTo(gateway: Server): void {
    this.#gateway = gateway;
  }

  async open(execution: ExecutionRequest, token: string): Promise<ContainerSocket> {
    this.#folder ??= makeFolder(this.#deps);
    const path = join(this.#folder, String(this.#opened++));
    const limits = { ...SERVER_LIMITS, requestTimeout: LIMITS.requestTimeoutMs };
    const server = createServer(limits, (request, response) =>
      this.#take(execution, token, request, response),
    );
    keepProtocolAlone(server, this.#deps.random);
    server.maxConnections = MAX_CONNECTIONS;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
    // Containers run as another user, so all users must be able to write to the socket. The folder's mode prevents
    // access by other users of this machine.
    chmodSync(path, 0o666);
    return {
      path,
      close() {
        server.close();
        server.closeAllConnections();
      },
    };
  }

  close(): void {
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
  }

  #take(
    execution: ExecutionRequest,
    token: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    try {
      this.#admit(execution, token, request);
    } catch (error) {
      const requestId = saneId(request.headers['x-request-id'], this.#deps.random);
      sendRawError(response, toPlatformError(error), requestId);
      return;
    }
    this.#gateway!.emit('request', request, response);
  }

  #admit(
    { executionId, plugin, permissions }: ExecutionRequest,
    token: string,
    request: IncomingMessage,
  ): void {
    const { authorization } = request.headers;
    if (authorization === undefined && HEALTH.has(request.url ?? '')) return;
    if (!safeEqual(authorization ?? '', `Bearer ${token}`)) {
      this.#deps.logger.diagnostic({
        domain: 'auth',
        event: 'auth.failed',
        level: 'warn',
        reasonCode: 'NOT_ITS_TOKEN',
        message: `A container of ${plugin.id} called the gateway without the token of its execution`,
        outcome: 'refused',
        evidence: { executionId, pluginId: plugin.id },
      });
      throw new PlatformError(
        'UNAUTHORIZED',
        'This socket accepts only the token of its own execution; send "Authorization: Bearer $SVC_TOKEN".',
        { headers: { 'www-authenticate': 'Bearer' } },
      );
    }
    if (!HEALTH.has(request.url ?? '')) requireCallbackRight(request.url ?? '', permissions);
  }
}

/** Creates a folder that only the gateway's user can open. Sockets of an earlier gateway are deleted. */
function makeFolder({ dataDir, portShare }: Pick<ContainerSocketsDeps, 'dataDir' | 'portShare'>): string {
  // Processes that share the port must not remove each other's sockets.
  const preferred = join(dataDir, 'run', portShare ? `containers-${portShare.number}` : 'containers');
  if (Buffer.byteLength(preferred) + '/1234567890'.length >= MAX_ADDRESS_BYTES)
    return mkdtempSync(join(tmpdir(), 'svc-'));
  rmSync(preferred, { recursive: true, force: true });
  mkdirSync(preferred, { recursive: true, mode: 0o700 });
  return preferred;
}
