import type { Duplex } from 'node:stream';
import type { Pool } from 'undici';
import { codeOf, messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { seconds } from '../../../kit/time/duration.ts';

/** API version that Docker supports since 20.10 and Podman since 3. */
const API = '/v1.41';
const CONNECTIONS = 64;
const ANSWER_MS = seconds(30);

/** The fields of a container's specification that this backend uses. @spec Docker Engine API: ContainerCreate */
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
  /** Seconds between the stop signal and the kill signal. */
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
  /** Memory limit that the engine enforces, in bytes. 0 means unlimited. */
  memoryBytes: number;
  pidsLimit: number;
}

type Method = 'GET' | 'POST' | 'DELETE';

/** Client of a container engine's API. Failed requests throw SANDBOX_ERROR with the engine's message. */
export class Engine {
  readonly #socketPath: string;
  #pool: Promise<Pool> | undefined;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  async create(spec: ContainerSpec): Promise<string> {
    const { Id } = (await this.#call('POST', '/containers/create', spec)) as { Id: string };
    return Id;
  }

  /** Attaches to stdin, stdout and stderr. Must be called before `start`, so that no output is lost. */
  async attach(id: string): Promise<Duplex> {
    const client = await this.#connections();
    try {
      const { socket } = await client.upgrade({
        method: 'POST',
        path: `${API}/containers/${id}/attach?stream=1&stdin=1&stdout=1&stderr=1`,
        headers: { host: 'engine' },
        protocol: 'tcp',
      });
      return socket;
    } catch (error) {
      // If a container cannot start, the error of the attach request can lack the cause. The response to a start
      // request contains the cause.
      if (messageOf(error) === 'bad upgrade') await this.#call('POST', `/containers/${id}/start`);
      throw unreachable(error, this.#socketPath);
    }
  }

  async start(id: string): Promise<void> {
    await this.#call('POST', `/containers/${id}/start`);
  }

  async state(id: string): Promise<ContainerState> {
    const { State, HostConfig } = (await this.#call('GET', `/containers/${id}/json`)) as {
      State: { Running?: boolean; ExitCode?: number; OOMKilled?: boolean };
      HostConfig?: { Memory?: number; PidsLimit?: number | null };
    };
    return {
      exitCode: State.Running ? null : (State.ExitCode ?? null),
      ranOutOfMemory: State.OOMKilled === true,
      memoryBytes: HostConfig?.Memory ?? 0,
      pidsLimit: HostConfig?.PidsLimit ?? 0,
    };
  }

  /** Removes a container, even if it is running. Does nothing if the container does not exist. */
  async remove(id: string): Promise<void> {
    await this.#call('DELETE', `/containers/${id}?force=true&v=true`, undefined, [404]);
  }

  /** Returns all containers with the label, including stopped containers. */
  async list(label: string): Promise<ListedContainer[]> {
    const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
    const found = (await this.#call('GET', `/containers/json?all=true&filters=${filters}`)) as Array<{
      Id: string;
      Labels: Record<string, string> | null;
    }>;
    return found.map(({ Id, Labels }) => ({ id: Id, labels: Labels ?? {} }));
  }

  async close(): Promise<void> {
    await (await this.#pool)?.destroy();
  }

  #connections(): Promise<Pool> {
    this.#pool ??= import('undici').then(
      ({ Pool }) =>
        new Pool('http://engine', {
          socketPath: this.#socketPath,
          connections: CONNECTIONS,
          headersTimeout: ANSWER_MS,
          bodyTimeout: ANSWER_MS,
        }),
    );
    return this.#pool;
  }

  async #call(
    method: Method,
    path: string,
    body?: unknown,
    accepted: readonly number[] = [],
  ): Promise<unknown> {
    const client = await this.#connections();
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
      throw unreachable(error, this.#socketPath);
    }
    if (status >= 400 && !accepted.includes(status)) throw refused(status, text, `${method} ${path}`);
    return parse(text);
  }
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
