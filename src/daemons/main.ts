import type { Socket } from 'node:net';
import { ServiceName } from '../contracts/index.ts';
import { toStartFailure } from '../kit/errors/error-message.ts';
import { messageOf } from '../kit/errors/errors.ts';
import { systemRandom } from '../kit/security/random.ts';
import { createLogger } from '../kit/telemetry/logger.ts';
import { BufferedOutput } from '../kit/telemetry/output.ts';
import { otlpTarget } from '../kit/telemetry/tracer.ts';
import { systemClock } from '../kit/time/clock.ts';
import { STOP_DEADLINES } from '../kit/time/stop-deadlines.ts';
import { createPeers } from './peers.ts';
import type { DaemonStart, FromDaemon, Listener, ToDaemon } from './process-protocol.ts';
import type { RunningDaemon } from './run-daemon.ts';
import { startByName } from './start-by-name.ts';

/**
 * Entry point of a service process: `main.ts <name>`. The supervisor starts this process and sends all parameters over
 * the IPC channel.
 */

const name = ServiceName.parse(process.argv[2]);
const output = new BufferedOutput(1, systemClock, reportDropped);
const logger = createLogger({ serviceId: name, output, clock: systemClock });
const peers = createPeers();
process.title = `svc ${name}`;

let daemon: RunningDaemon | undefined;
let starting: Promise<void> | undefined;
let stopping = false;
let drainMs = 0;
let exitCode = 0;

process.on('message', (message: ToDaemon, handle: unknown) => {
  if (message.type === 'start') starting = start(message.start, handle as Listener | undefined);
  else if (message.type === 'peers') peers.set(message.urls);
  else if (message.type === 'unready') daemon?.becomeUnready();
  else void stop();
});
// The channel closes when the parent process ends for any reason. Without this listener, the service would then
// continue to run without a supervisor.
process.on('disconnect', () => void stop());
process.on('SIGTERM', () => void stop());
process.on('SIGINT', () => void stop());
process.on('uncaughtException', die);
process.on('unhandledRejection', die);
if (!process.connected) die(new Error('Start the services with `svc up`; this program cannot run alone.'));

async function start({ logLevel, ...told }: DaemonStart, listener: Listener | undefined): Promise<void> {
  drainMs = told.config[name].drainMs;
  peers.set(told.peers);
  try {
    daemon = await startByName(name, {
      ...told,
      peers,
      output,
      clock: systemClock,
      random: systemRandom(),
      env: process.env,
      otlp: otlpTarget(process.env),
      onFatal,
      onSandbox: (sandbox) => tell({ type: 'sandbox', sandbox }),
      listener,
      ...(logLevel ? { logLevel } : {}),
    });
    const { url, ownUrl, port } = daemon;
    tell({ type: 'listening', url, ownUrl, port }, undefined, daemon.listener);
  } catch (error) {
    output.flush();
    // Exits only after the message has been sent.
    tell({ type: 'failed', error: toStartFailure(name, error) }, () => process.exit(1));
  }
}

/** Drains the service, and then exits with an error code for the supervisor. */
function onFatal(): void {
  exitCode = 1;
  void stop();
}

async function stop(deadlineMs = drainMs + STOP_DEADLINES.processEndMs): Promise<void> {
  if (stopping) return;
  stopping = true;
  setTimeout(() => die(new Error(`${name} did not drain within ${deadlineMs} ms`)), deadlineMs).unref();
  try {
    await starting;
    await daemon?.close();
    output.flush();
    process.exit(exitCode);
  } catch (error) {
    die(error);
  }
}

/** Reports that log lines were dropped because the supervisor read the log too slowly. */
function reportDropped(count: number): void {
  logger.diagnostic({
    domain: 'telemetry',
    event: 'telemetry.lines_dropped',
    level: 'warn',
    reasonCode: 'LOG_LINES_DROPPED',
    message: `${count} lines of this log were dropped: the supervisor did not read them in time`,
    outcome: 'degraded',
    evidence: { dropped: count },
  });
}

function die(error: unknown): never {
  logger.fatal(`${name} exits: ${messageOf(error)}`, { error });
  output.flush();
  process.exit(1);
}

function tell(message: FromDaemon, sent: () => void = () => {}, handle?: Listener): void {
  // The cast is needed, because Node's types do not include native handles, which transfer listening sockets.
  if (process.connected) process.send?.(message, handle as Socket | undefined, undefined, sent);
  else sent();
}
