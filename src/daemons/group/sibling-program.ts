import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { ServiceName } from '../../contracts/index.ts';
import { entryFile } from '../../kit/files/paths.ts';
import { lineBlocks } from '../../kit/streams/line-blocks.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { LineOutput } from '../../kit/telemetry/output.ts';
import type { SandboxStatus } from '../../plugins/index.ts';
import { nodeFlagsOf } from '../node-flags.ts';
import type { DaemonStart, FromSibling, PeerUrls, ToSibling } from '../process-protocol.ts';
import type { Frame } from './link.ts';

/** The primary's view of a sibling process. */
export interface SiblingProgram {
  readonly pid: number;
  /** Resolves with a description of how the process ended. */
  readonly ended: Promise<string>;
  /** Returns false when the process has ended. */
  send(frame: Frame): boolean;
  sendPeers(urls: PeerUrls): void;
  stop(): void;
  kill(): void;
}

export interface SiblingProgramOptions {
  name: ServiceName;
  start: DaemonStart;
  /** Receives the sibling's log in whole lines, so that lines of two processes never mix. */
  output: LineOutput;
  logger: Logger;
  onFrame: (frame: Frame, socket: Socket | undefined) => void;
  onListening: () => void;
  onSandbox?: ((sandbox: SandboxStatus) => void) | undefined;
}

/** Starts another process of this service. The new process exits by itself when this process ends. */
export function startSiblingProgram(options: SiblingProgramOptions): SiblingProgram {
  const { name, start, onFrame, onListening } = options;
  const child = fork(entryFile('daemon'), [name], {
    cwd: start.projectDir,
    execArgv: nodeFlagsOf(name),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let failure: string | undefined;
  child.on('message', (message: FromSibling, socket?: Socket) => {
    if (message.type === 'group') onFrame(message.frame, socket);
    else if (message.type === 'listening') onListening();
    else if (message.type === 'sandbox') options.onSandbox?.(message.sandbox);
    else if (message.type === 'failed') failure = message.error.message;
  });
  relayLog(child, options);
  const ended = new Promise<string>((resolve) => {
    child.once('close', (code, signal) =>
      resolve(failure ?? (signal ? `signal ${signal}` : `exit code ${code}`)),
    );
    child.once('error', (error) => child.pid === undefined && resolve(error.message));
  });
  const tell = (message: ToSibling): boolean => {
    // A write fails only if the process has ended, and `ended` reports the end.
    if (child.connected) child.send(message, () => {});
    return child.connected;
  };
  tell({ type: 'start', start });
  return {
    pid: child.pid ?? 0,
    ended,
    send: (frame) => tell({ type: 'group', frame }),
    sendPeers: (urls) => void tell({ type: 'peers', urls }),
    stop: () => void tell({ type: 'stop' }),
    kill: () => void child.kill('SIGKILL'),
  };
}

/** Forwards log records unparsed. Output of V8 or native code on stderr is converted to a log record. */
function relayLog(child: ChildProcess, { output, logger }: SiblingProgramOptions): void {
  const records = lineBlocks((block) => output.write(block.toString('utf8')));
  child.stdout?.on('data', records.push);
  child.stdout?.once('end', records.end);
  const complaints = lineBlocks((block) => {
    for (const line of block.toString('utf8').split('\n')) {
      if (line.trim() !== '')
        logger.error(line, { layer: 'process', meta: { stream: 'stderr', pid: child.pid } });
    }
  });
  child.stderr?.on('data', complaints.push);
  child.stderr?.once('end', complaints.end);
}
