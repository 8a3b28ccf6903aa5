import { ServiceName } from '../contracts/index.ts';
import { systemClock } from '../kit/clock.ts';
import { messageOf } from '../kit/errors.ts';
import { createLogger } from '../kit/logger.ts';
import { bufferedOutput } from '../kit/output.ts';
import { systemRandom } from '../kit/random.ts';
import { otlpTarget } from '../kit/tracer.ts';
import { createPeers } from './peers.ts';
import { type DaemonStart, type FromDaemon, type ToDaemon, toErrorMessage } from './process-protocol.ts';
import type { RunningDaemon } from './run-daemon.ts';
import { startByName } from './start-by-name.ts';

/** The process of one daemon: `main.ts <name>`, started by the supervisor, which tells it everything over the channel. */

/** How long requests under way may take to finish once we are asked to stop. */
const DRAIN_DEADLINE_MS = 10_000;

const name = ServiceName.parse(process.argv[2]);
const output = bufferedOutput(1, systemClock);
const logger = createLogger({ serviceId: name, output, clock: systemClock });
const peers = createPeers();
process.title = `svc ${name}`;

let daemon: RunningDaemon | undefined;
let starting: Promise<void> | undefined;
let stopping = false;

process.on('message', (message: ToDaemon) => {
  if (message.type === 'start') starting = start(message.start);
  else if (message.type === 'peers') peers.set(message.urls);
  else void stop();
});
// The channel ends with the supervisor, however that ended: nobody is left to watch over us or to stop us.
process.on('disconnect', () => void stop());
process.on('SIGTERM', () => void stop());
process.on('SIGINT', () => void stop());
process.on('uncaughtException', die);
process.on('unhandledRejection', die);
if (!process.connected) die(new Error('A daemon is started by `svc up`, not by hand.'));

async function start({ logLevel, ...told }: DaemonStart): Promise<void> {
  peers.set(told.peers);
  try {
    daemon = await startByName(name, {
      ...told,
      peers,
      output,
      clock: systemClock,
      random: systemRandom(),
      otlp: otlpTarget(process.env),
      ...(logLevel ? { logLevel } : {}),
    });
    tell({ type: 'listening', url: daemon.url, port: daemon.port });
  } catch (error) {
    output.flush();
    // The message must have left before the process does.
    tell({ type: 'failed', error: toErrorMessage(error) }, () => process.exit(1));
  }
}

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  setTimeout(
    () => die(new Error(`${name} did not drain within ${DRAIN_DEADLINE_MS} ms`)),
    DRAIN_DEADLINE_MS,
  ).unref();
  try {
    await starting;
    await daemon?.close();
    output.flush();
    process.exit(0);
  } catch (error) {
    die(error);
  }
}

function die(error: unknown): never {
  logger.fatal(`${name} ends: ${messageOf(error)}`, { error });
  output.flush();
  process.exit(1);
}

function tell(message: FromDaemon, sent: () => void = () => {}): void {
  if (process.connected) process.send?.(message, undefined, undefined, sent);
  else sent();
}
