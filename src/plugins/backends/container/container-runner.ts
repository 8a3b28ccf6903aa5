import type { Duplex } from 'node:stream';
import { systemClock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { captureOutput } from '../worker/output-capture.ts';
import type { SpawnEvents, SpawnedRunner } from '../worker/spawn-runner.ts';
import { splitStreams } from './attached.ts';
import type { Engine } from './engine.ts';

/** Grace period for a process to exit, and for a handler to react to `ctx.signal`. */
export const LEAVE_MS = seconds(1);

/** A started container and the socket attached to it. */
export interface AttachedContainer {
  engine: Engine;
  id: string;
  socket: Duplex;
}

/** Adapts a running container to the process interface that `RunnerProcess` requires. */
export function containerRunner(
  { engine, id, socket }: AttachedContainer,
  events: SpawnEvents,
): SpawnedRunner {
  const { channel, stderr } = splitStreams(socket);
  const output = captureOutput(stderr, systemClock, (line) => events.onLine('stderr', line));
  let stderrTail = '';
  let isGone = false;

  async function finish(): Promise<void> {
    if (isGone) return;
    isGone = true;
    const state = await engine.state(id).catch(() => undefined);
    stderrTail = output.tail();
    // The kernel's out-of-memory killer writes no message. V8's message is added instead, because `describeExit`
    // recognizes it.
    if (state?.ranOutOfMemory) stderrTail += '\nheap out of memory';
    const code = state?.exitCode ?? null;
    if (code !== null && code > 128) events.onExit(null, signalName(code - 128));
    else events.onExit(code, null);
  }

  socket.on('close', () => void finish());
  socket.on('end', () => void finish());
  return {
    channel,
    pid: undefined,
    // Empty, because the memory limit of the container includes its in-memory folders.
    memoryFolders: [],
    stderrTail: () => stderrTail,
    leave() {
      channel.end();
      systemClock.after(LEAVE_MS, () => socket.destroy());
    },
    // Destroying the socket only ends the connection. The backend removes the container afterwards.
    kill: () => socket.destroy(),
  };
}

function signalName(number: number): string {
  return number === 9 ? 'SIGKILL' : number === 15 ? 'SIGTERM' : `signal ${number}`;
}
