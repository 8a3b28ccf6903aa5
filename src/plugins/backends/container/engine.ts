import type { Duplex } from 'node:stream';
import type { Pool } from 'undici';
import { codeOf, messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { seconds } from '../../../kit/time/duration.ts';

/** Supported by Docker since 20.10 and by Podman since 3. */
const API = '/v1.41';
const CONNECTIONS = 64;
const ANSWER_MS = seconds(30);

/** The fields of a container's specification that we use. @spec Docker Engine API: ContainerCreate */
export interface ContainerSpec {
  Image: string;
  Entrypoint: string[];
  Cmd: string[];
  Env: string[];
  User: string;
  WorkingDir: string;
  Hostname: string;
  Labels: Record<string, string>;
  OpenStdin: true;
  StdinOnce: true;
  /** Seconds between the stop signal and the kill. */
  StopTimeout: number;
  AttachStdin: true;
  AttachStdout: true;
  AttachStderr: true;
  NetworkDisabled?: boolean;
  HostConfig: Record<string, unknown>;
}

export interface ListedContainer {
  id: string;
  labels: Record<string, string>;
}

export interface ContainerState {
  exitCode: number | null;
  ranOutOfMemory: boolean;
  /** The limit that the engine enforces; 0: none. */
  memoryBytes: number;
  pidsLimit: number;
}

/**
 * A container engine behind its Unix socket. Every method throws SANDBOX_ERROR with the engine's message.
 */
export interface Engine {
  create(spec: ContainerSpec): Promise<string>;
  /** Attaches stdin, stdout and stderr; call it before `start`, so that no output is lost. */
  attach(id: string): Promise<Duplex>;
  start(id: string): Promise<void>;
  state(id: string): Promise<ContainerState>;
  /** Forces removal, running or not; a missing container is no error. */
  remove(id: string): Promise<void>;
  /** All containers with the label, running or not. */
  list(label: string): Promise<ListedContainer[]>;
  close(): Promise<void>;
}

export function createEngine(socketPath: string): Engine {
  let pool: Promise<Pool> | undefined;

  function connections(): Promise<Pool> {
    pool ??= import('undici').then(
      ({ Pool }) =>
        new Pool('http://engine', {
          socketPath,
          connections: CONNECTIONS,
          headersTimeout: ANSWER_MS,
          bodyTimeout: ANSWER_MS,
        }),
    );
    return pool;
  }

  async function call(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: unknown,
    accepted: readonly number[] = [],
  ): Promise<unknown> {
    const client = await connections();
    let status: number;
    let text: string;
    try {
      const response = await client.request({
        method,
        path: API + path,
        headers: { host: 'engine', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      status = response.statusCode;
      text = await response.body.text();
    } catch (error) {
      throw unreachable(error, socketPath);
    }
    if (status >= 400 && !accepted.includes(status)) throw refused(status, text, `${method} ${path}`);
    return parse(text);
  }

  return {
    async create(spec) {
      const { Id } = (await call('POST', '/containers/create', spec)) as { Id: string };
      return Id;
    },
    async attach(id) {
      const client = await connections();
      try {
        const { socket } = await client.upgrade({
          method: 'POST',
          path: `${API}/containers/${id}/attach?stream=1&stdin=1&stdout=1&stderr=1`,
          headers: { host: 'engine' },
          protocol: 'tcp',
        });
        return socket;
      } catch (error) {
        // Refused, usually because the container cannot start; starting it makes the engine say why.
        if (messageOf(error) === 'bad upgrade') await call('POST', `/containers/${id}/start`);
        throw unreachable(error, socketPath);
      }
    },
    start: async (id) => void (await call('POST', `/containers/${id}/start`)),
    async state(id) {
      const { State, HostConfig } = (await call('GET', `/containers/${id}/json`)) as {
        State: { Running?: boolean; ExitCode?: number; OOMKilled?: boolean };
        HostConfig?: { Memory?: number; PidsLimit?: number | null };
      };
      return {
        exitCode: State.Running ? null : (State.ExitCode ?? null),
        ranOutOfMemory: State.OOMKilled === true,
        memoryBytes: HostConfig?.Memory ?? 0,
        pidsLimit: HostConfig?.PidsLimit ?? 0,
      };
    },
    remove: async (id) =>
      void (await call('DELETE', `/containers/${id}?force=true&v=true`, undefined, [404])),
    async list(label) {
      const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
      const found = (await call('GET', `/containers/json?all=true&filters=${filters}`)) as Array<{
        Id: string;
        Labels: Record<string, string> | null;
      }>;
      return found.map(({ Id, Labels }) => ({ id: Id, labels: Labels ?? {} }));
    },
    async close() {
      await (await pool)?.destroy();
    },
  };
}

function parse(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refused(status: number, text: string, call: string): PlatformError {
  const said = (parse(text) as { message?: string } | undefined)?.message ?? text.slice(0, 500);
  const isImage = /no such image|image not known/i.test(said);
  const mend = isImage
    ? ' Build the runner image with `npm run image:runner`, or set execution.container.image to another one.'
    : '';
  return new PlatformError('SANDBOX_ERROR', `The container engine refused (${status}): ${said}.${mend}`, {
    details: { status, call },
  });
}

function unreachable(cause: unknown, socketPath: string): PlatformError {
  if (cause instanceof PlatformError) return cause;
  const code = codeOf(cause);
  const why =
    code === 'ENOENT' ? 'there is no such socket' : code === 'EACCES' ? 'access is denied' : messageOf(cause);
  return new PlatformError(
    'SANDBOX_ERROR',
    `The container engine at ${socketPath} cannot be reached: ${why}. Start Docker or Podman, or set execution.container.socket.`,
    { details: { socket: socketPath, ...(code ? { code } : {}) }, cause },
  );
}
