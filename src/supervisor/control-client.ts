import { setTimeout as sleep } from 'node:timers/promises';
import type { ErrorBody, ServiceName } from '../contracts/index.ts';
import { isPlatformCode } from '../contracts/index.ts';
import { codeOf, PlatformError } from '../kit/errors/errors.ts';
import { CONTROL, type SupervisorStatus } from './control-protocol.ts';
import type { DataFolder } from './data-folder.ts';
import { nodeHttp } from './node-http.ts';
import { isRunning } from './process-identity.ts';
import { readRunFile } from './run-file.ts';

const POLL_MS = 20;
/** Time limit for status requests. Only a supervisor that hangs or is paused takes this long. */
const STATUS_TIMEOUT_MS = 5000;

/** Sends requests to a running supervisor over its control socket. */
export interface ControlClient {
  readonly pid: number;
  status(): Promise<SupervisorStatus>;
  restart(name: ServiceName | null): Promise<SupervisorStatus>;
  /** Resolves when all services have stopped and the supervisor process has exited. */
  stop(): Promise<SupervisorStatus>;
}

/** Returns a client for the supervisor of this data folder, or null if no supervisor is running. */
export function findSupervisor(folder: DataFolder): ControlClient | null {
  const run = readRunFile(folder);
  if (!run || !isRunning(run.supervisor)) return null;
  const { socket, supervisor } = run;
  return {
    pid: supervisor.pid,
    status: () => call(socket, 'GET', CONTROL.status, STATUS_TIMEOUT_MS),
    restart: (name) => call(socket, 'POST', CONTROL.restart + (name ? `?service=${name}` : '')),
    async stop() {
      const status = await call(socket, 'POST', CONTROL.stop);
      while (isRunning(supervisor)) await sleep(POLL_MS);
      return status;
    },
  };
}

/**
 * Request headers. The host is an IP address, because Node needs 6 ms to compile its regular expression for host names.
 */
const HEADERS = { host: '127.0.0.1' };

function call(socketPath: string, method: string, path: string, timeout?: number): Promise<SupervisorStatus> {
  return new Promise((resolve, reject) => {
    const options = { socketPath, method, path, agent: false, headers: HEADERS, timeout };
    const sent = nodeHttp().request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const body: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
        if (response.statusCode === 200) resolve(body as SupervisorStatus);
        else reject(asPlatformError(body as ErrorBody));
      });
      response.on('error', (error) => reject(unreachable(error)));
    });
    sent.on('error', (error) => reject(unreachable(error)));
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.end();
  });
}

function asPlatformError({ error: { code, message, details } }: ErrorBody): PlatformError {
  return new PlatformError(isPlatformCode(code) ? code : 'INTERNAL_ERROR', message, { details });
}

function unreachable(error: Error): PlatformError {
  return new PlatformError(
    'SERVICE_UNAVAILABLE',
    `The supervisor does not answer (${codeOf(error) ?? error.message}); it may be starting or stopping.`,
    { details: { hint: 'Try again in a moment, or check `svc logs`.' }, cause: error },
  );
}
