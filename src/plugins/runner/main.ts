/**
 * Entry point of the runner process, which runs plugin code. Reads frames from the channel, runs handlers and sends
 * replies. The parent process enforces the sandbox and the limits. @spec docs/operations.md "Where plugin code runs"
 */
import { setSourceMapsSupport } from 'node:module';
import process from 'node:process';
import { type Channel, openChannel } from './channel.ts';
import { Executions } from './executions.ts';
import { messageOf } from './failure.ts';
import { routeGatewayToSocket } from './gateway-socket.ts';
import { installGuards, lock } from './guards.ts';
import { captureConsole } from './log.ts';
import { installModuleHooks } from './module-hooks.ts';
import { guardPipes } from './pipe-guard.ts';
import { type FatalFrame, type InitFrame, PROTOCOL_VERSION, type ToRunner } from './protocol.ts';

const FATAL_EXIT_CODE = 70;

function start(): void {
  installGuards();
  routeGatewayToSocket();
  let executions: Executions | undefined;
  const channel = openChannel((frame: ToRunner, chars: number) => {
    if (frame.type === 'init') executions = initialise(frame, channel);
    else if (frame.type === 'execute') executions?.accept(frame, chars);
    else if (frame.type === 'recall') executions?.recall(frame);
    else if (frame.type === 'cancel') executions?.cancel(frame);
    else if (frame.type === 'pull') executions?.streams.pull(frame.executionId, frame.bytes);
    else if (frame.type === 'reply') executions?.calls.settle(frame);
  });
  // In a container, pipes need no guard, because the gateway's socket is the only Unix socket that plugin code can
  // open.
  if (channel.socket) guardPipes(channel.socket, lock);
}

function initialise(frame: InitFrame, channel: Channel): Executions {
  process.title = `svc-runner ${frame.plugin.id}`;
  // Makes stack traces show the author's source files, even for bundled code.
  setSourceMapsSupport(true);
  installModuleHooks(frame.sdk, frame.plugin.root, frame.code);
  const executions = new Executions(frame, channel);
  captureConsole(executions.write);
  // The state of the process is undefined after an uncaught exception. The process exits and its calls fail. A new
  // process serves later calls.
  process.on('uncaughtException', (error) =>
    channel.sendLast(fatal('uncaught exception', error), FATAL_EXIT_CODE),
  );
  process.on('unhandledRejection', (error) =>
    channel.sendLast(fatal('unhandled rejection', error), FATAL_EXIT_CODE),
  );
  channel.send({ type: 'ready', protocol: PROTOCOL_VERSION });
  return executions;
}

function fatal(reason: FatalFrame['reason'], thrown: unknown): FatalFrame {
  const stack = thrown instanceof Error ? thrown.stack : undefined;
  return { type: 'fatal', reason, error: { message: messageOf(thrown), ...(stack ? { stack } : {}) } };
}

start();
