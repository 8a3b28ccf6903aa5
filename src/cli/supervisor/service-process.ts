import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { ServiceName } from '../../contracts/index.ts';
import { nodeFlagsOf } from '../../daemons/node-flags.ts';
import {
  type DaemonStart,
  type FromDaemon,
  fromErrorMessage,
  type Listener,
  type PeerUrls,
  type ToDaemon,
} from '../../daemons/process-protocol.ts';
import type { Environment } from '../../kit/config.ts';
import { PlatformError } from '../../kit/errors.ts';
import { lineBlocks } from '../../kit/line-blocks.ts';
import { entryFile } from '../../kit/paths.ts';
import type { SandboxStatus } from '../../plugins/index.ts';
import { dataFolder } from './data-folder.ts';

export interface ExitInfo {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** It said why it could not start. */
  saidWhy: boolean;
}

/** Signals that are sent from outside; any other is how a process ends that did something wrong itself. */
const SENT = new Set<NodeJS.Signals | null>([null, 'SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']);

/** Whether a process died of a fault of its own. Want of memory looks like a kill from here. */
export function isFault({ code, signal, saidWhy }: ExitInfo): boolean {
  return !SENT.has(signal) || (code !== null && code !== 0 && !saidWhy);
}

export interface Listening {
  url: string;
  port: number;
  /** For the next process; undefined where several share the port. */
  listener: Listener | undefined;
}

export interface ServiceProcess {
  readonly pid: number;
  /** Rejects when the daemon says why it cannot, or ends before it listens. */
  readonly listening: Promise<Listening>;
  readonly exited: Promise<ExitInfo>;
  sendPeers(urls: PeerUrls): void;
  /** Asks it to drain and exit. */
  stop(): void;
  kill(): void;
}

export interface SpawnOptions {
  name: ServiceName;
  start: DaemonStart;
  /** That of the process before. */
  listener?: Listener | undefined;
  env: Environment;
  /** Whole lines of its log, ready to append; what it prints to stderr comes as log records too. */
  onLines: (lines: Buffer) => void;
  onSandbox?: (sandbox: SandboxStatus) => void;
  now: () => number;
}

/** Told over the channel instead: a process's environment can be read by others of the same user, and is inherited. */
const SECRET_VARIABLES = [
  'GATEWAY_JWT_SECRET',
  'GATEWAY_JWT_SECRET_PREVIOUS',
  'GATEWAY_INTERNAL_SECRET',
  'SVC_MASTER_KEY',
  'SVC_TOKEN',
];

/** Starts one daemon as a child of this process. */
export function spawnService(options: SpawnOptions): ServiceProcess {
  const { name, start, listener, env, onLines, onSandbox, now } = options;
  const child = fork(entryFile('daemon'), [name], {
    cwd: start.projectDir,
    env: daemonEnvironment(start.dataDir, env),
    // A group of its own: Ctrl-C in the terminal reaches the supervisor alone, which then drains in order.
    detached: true,
    execArgv: nodeFlagsOf(name),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let saidWhy = false;
  const exited = new Promise<ExitInfo>((resolve) => {
    // `close` comes after the last output, so that the reason of a crash is in the log when it is looked for.
    child.once('close', (code, signal) => resolve({ code, signal, saidWhy }));
    child.once('error', () => child.pid === undefined && resolve({ code: null, signal: null, saidWhy }));
  });
  const listening = waitForListening(name, child);
  child.on('message', (message: FromDaemon) => {
    if (message.type === 'sandbox') onSandbox?.(message.sandbox);
    if (message.type === 'failed') saidWhy = true;
  });
  const lines = lineBlocks(onLines);
  child.stdout?.on('data', lines.push);
  child.stdout?.once('end', lines.end);
  const complaints = lineBlocks((block) => onLines(asRecords(name, block, now)));
  child.stderr?.on('data', complaints.push);
  child.stderr?.once('end', complaints.end);

  const tell = (message: ToDaemon, handle?: Listener): void => {
    // A child on its way out no longer listens; its exit is seen elsewhere. Node's types do not know its own handles.
    if (child.connected) child.send(message, handle as Socket | undefined, () => {});
  };
  tell({ type: 'start', start }, listener);
  return {
    pid: child.pid ?? 0,
    listening,
    exited,
    sendPeers: (urls) => tell({ type: 'peers', urls }),
    stop: () => tell({ type: 'stop' }),
    kill: () => void child.kill('SIGKILL'),
  };
}

/**
 * What glibc is to give back at once, in bytes. Hashing a client's secret takes 16 MiB for a moment, in any of four threads;
 * left to itself, glibc takes such blocks for usual from the first on, and each thread keeps one for good.
 */
const GIVEN_BACK = String(8 * 1024 * 1024);

function daemonEnvironment(dataDir: string, env: Environment): Environment {
  const told = Object.entries(env).filter(([key]) => !SECRET_VARIABLES.includes(key));
  return {
    NODE_COMPILE_CACHE: dataFolder(dataDir).compileCache,
    MALLOC_MMAP_THRESHOLD_: GIVEN_BACK,
    MALLOC_TRIM_THRESHOLD_: GIVEN_BACK,
    ...Object.fromEntries(told),
  };
}

function waitForListening(name: ServiceName, child: ChildProcess): Promise<Listening> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: FromDaemon, handle: unknown) => {
      const listener = handle as Listener | undefined;
      if (message.type === 'listening') resolve({ url: message.url, port: message.port, listener });
      else if (message.type === 'failed') reject(fromErrorMessage(message.error));
    });
    child.once('error', (error) =>
      reject(
        new PlatformError('INTERNAL_ERROR', `${name} could not be started: ${error.message}.`, {
          cause: error,
        }),
      ),
    );
    child.once('close', (code, signal) =>
      reject(
        new PlatformError(
          'SERVICE_UNAVAILABLE',
          `${name} ended before it was ready (${exitText({ code, signal })}).`,
        ),
      ),
    );
  });
}

export function exitText({ code, signal }: Pick<ExitInfo, 'code' | 'signal'>): string {
  return signal ? `signal ${signal}` : `exit code ${code}`;
}

/** What V8 or a native part printed on stderr, as log records: the log files hold nothing but records. */
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
