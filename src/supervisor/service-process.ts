import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { ServiceName } from '../contracts/index.ts';
import { MEMORY_VARIABLES, nodeFlagsOf } from '../daemons/node-flags.ts';
import type { DaemonStart, FromDaemon, Listener, PeerUrls, ToDaemon } from '../daemons/process-protocol.ts';
import type { Environment } from '../kit/config/config.ts';
import { PLATFORM_SECRETS } from '../kit/config/mounted-secrets.ts';
import { fromErrorMessage } from '../kit/errors/error-message.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import { entryFile } from '../kit/files/paths.ts';
import { lineBlocks } from '../kit/streams/line-blocks.ts';
import type { SandboxStatus } from '../plugins/index.ts';
import { dataFolder } from './data-folder.ts';

export interface ExitInfo {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Whether the process reported the reason for its failed start. */
  reportedFailure: boolean;
}

/** Signals that other processes send. Any other signal means a fault of the process itself. */
const EXTERNAL_SIGNALS = new Set<NodeJS.Signals | null>([
  null,
  'SIGKILL',
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
  'SIGQUIT',
]);

/**
 * Returns true if the process crashed by itself. A kill from outside, for example by the out-of-memory killer, and an
 * exit after a reported failure are not crashes.
 */
export function isFault({ code, signal, reportedFailure }: ExitInfo): boolean {
  return !EXTERNAL_SIGNALS.has(signal) || (code !== null && code !== 0 && !reportedFailure);
}

export interface Listening {
  url: string;
  /** URL that reaches this process also if several processes share the port. */
  ownUrl: string;
  port: number;
  /** Listening socket that stays open for the next process. Undefined if several processes share the port. */
  listener: Listener | undefined;
}

export interface ServiceProcess {
  readonly pid: number;
  /** Rejects if the service reports a failure or exits before it listens. */
  readonly listening: Promise<Listening>;
  readonly exited: Promise<ExitInfo>;
  sandbox(): SandboxStatus | null;
  sendPeers(urls: PeerUrls): void;
  /** Makes `/ready` return 503, so that load balancers stop sending requests. The service still serves requests. */
  becomeUnready(): void;
  /** Sends a message that makes the process drain and exit. */
  stop(): void;
  kill(): void;
}

export interface SpawnOptions {
  name: ServiceName;
  start: DaemonStart;
  /** The listening socket of the previous process, which the new process reuses. */
  listener?: Listener | undefined;
  env: Environment;
  /** Receives complete log lines. Output on stderr is converted to log records first. */
  onLines: (lines: Buffer) => void;
  now: () => number;
}

/**
 * Secrets that services receive over the IPC channel. Other processes of the same user could read environment
 * variables.
 */
const SECRET_VARIABLES = [...PLATFORM_SECRETS, 'SVC_TOKEN'];

export function spawnService(options: SpawnOptions): ServiceProcess {
  const { name, start, listener, env, onLines, now } = options;
  const child = fork(entryFile('daemon'), [name], {
    cwd: start.projectDir,
    env: daemonEnvironment(start.dataDir, env),
    // The child has its own process group, so that Ctrl-C reaches only the supervisor. The supervisor then drains the
    // services in order.
    detached: true,
    execArgv: nodeFlagsOf(name),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let reportedFailure = false;
  let sandbox: SandboxStatus | null = null;
  const exited = new Promise<ExitInfo>((resolve) => {
    // Unlike `exit`, `close` is emitted after the last output, so the log already contains the reason for a crash.
    child.once('close', (code, signal) => resolve({ code, signal, reportedFailure }));
    child.once(
      'error',
      () => child.pid === undefined && resolve({ code: null, signal: null, reportedFailure }),
    );
  });
  const listening = waitForListening(name, child);
  child.on('message', (message: FromDaemon) => {
    if (message.type === 'sandbox') ({ sandbox } = message);
    if (message.type === 'failed') reportedFailure = true;
  });
  const lines = lineBlocks(onLines);
  child.stdout?.on('data', lines.push);
  child.stdout?.once('end', lines.end);
  const stderrLines = lineBlocks((block) => onLines(asRecords(name, block, now)));
  child.stderr?.on('data', stderrLines.push);
  child.stderr?.once('end', stderrLines.end);

  const send = (message: ToDaemon, handle?: Listener): void => {
    // A disconnected child gets no message. The cast is needed, because Node's types do not accept a `Listener` here.
    if (child.connected) child.send(message, handle as Socket | undefined, () => {});
  };
  send({ type: 'start', start }, listener);
  return {
    pid: child.pid ?? 0,
    listening,
    exited,
    sandbox: () => sandbox,
    sendPeers: (urls) => send({ type: 'peers', urls }),
    becomeUnready: () => send({ type: 'unready' }),
    stop: () => send({ type: 'stop' }),
    kill: () => void child.kill('SIGKILL'),
  };
}

function daemonEnvironment(dataDir: string, env: Environment): Environment {
  const passed = Object.entries(env).filter(([key]) => !SECRET_VARIABLES.includes(key));
  return {
    NODE_COMPILE_CACHE: dataFolder(dataDir).compileCache,
    ...MEMORY_VARIABLES,
    ...Object.fromEntries(passed),
  };
}

function waitForListening(name: ServiceName, child: ChildProcess): Promise<Listening> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: FromDaemon, handle: unknown) => {
      const listener = handle as Listener | undefined;
      if (message.type === 'listening') {
        const { url, ownUrl, port } = message;
        resolve({ url, ownUrl, port, listener });
      } else if (message.type === 'failed') reject(fromErrorMessage(message.error));
    });
    child.once('error', (error) =>
      reject(
        new PlatformError('INTERNAL_ERROR', `Cannot start ${name}: ${error.message}.`, {
          cause: error,
        }),
      ),
    );
    child.once('close', (code, signal) =>
      reject(
        new PlatformError(
          'SERVICE_UNAVAILABLE',
          `${name} exited before it was ready (${exitText({ code, signal })}).`,
        ),
      ),
    );
  });
}

export function exitText({ code, signal }: Pick<ExitInfo, 'code' | 'signal'>): string {
  return signal ? `signal ${signal}` : `exit code ${code}`;
}

/** Converts stderr output of V8 or native code to log records, because log files contain only records. */
function asRecords(name: ServiceName, block: Buffer, now: () => number): Buffer {
  const records = block
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((message) =>
      JSON.stringify({
        level: 'error',
        time: now(),
        serviceId: name,
        logsSource: 'platform',
        layer: 'process',
        message,
        meta: { stream: 'stderr' },
      }),
    );
  return Buffer.from(records.map((record) => `${record}\n`).join(''));
}
