import net from 'node:net';
import process from 'node:process';
import { createLineReader } from '../line-reader.ts';
import type { FromRunner, ToRunner } from './protocol.ts';

/**
 * Command-line flag that moves frames to stdin and stdout. The flag is needed because container engines cannot pass
 * other file descriptors to the process.
 */
const STDIO_FLAG = '--stdio';
/** File descriptor of the channel, inherited from the parent process. */
const CHANNEL_FD = 3;
/**
 * Maximum size of a frame. The sending service is trusted, so the limit only bounds memory if the service malfunctions.
 */
const MAX_FRAME_BYTES = 256 * 1024 * 1024;
const LAST_WORDS_MS = 200;

export interface Channel {
  /** The inherited socket of the channel. Undefined if the channel uses stdin and stdout, as in a container. */
  readonly socket: net.Socket | undefined;
  /** Sends a frame, after the queued frames and in the same write. */
  send(frame: FromRunner): void;
  sendText(json: string): void;
  /** Queues a frame, which `flush` or the next `send` sends. */
  queueText(json: string): void;
  /**
   * Sends the queued frames in one write. Returns undefined if the kernel has accepted the frames, so that a crash
   * cannot lose them. Otherwise, returns a promise for that.
   */
  flush(): Promise<void> | undefined;
  /** Sends a last frame. Exits the process when the frame is flushed. */
  sendLast(frame: FromRunner, exitCode: number): void;
}

/** Opens the frame channel. The process exits when the parent process closes the channel or exits. */
export function openChannel(onFrame: (frame: ToRunner, chars: number) => void): Channel {
  const isOverStdio = process.argv.includes(STDIO_FLAG);
  const { input, output } = isOverStdio ? overStdio() : overDescriptor();
  const reader = createLineReader(MAX_FRAME_BYTES, (line) =>
    onFrame(JSON.parse(line) as ToRunner, line.length),
  );
  input.on('data', (chunk: Buffer) => {
    if (!reader.push(chunk)) process.exit(1);
  });
  input.on('end', () => process.exit(0));
  for (const end of new Set([input, output])) end.on('error', () => process.exit(0));
  let queued = '';

  function flush(): Promise<void> | undefined {
    if (queued === '') return undefined;
    const text = queued;
    queued = '';
    let onWritten: (() => void) | undefined;
    output.write(text, () => onWritten?.());
    if (output.writableLength === 0) return undefined;
    return new Promise((resolve) => {
      onWritten = resolve;
    });
  }
  function sendText(json: string): void {
    queued += `${json}\n`;
    void flush();
  }
  // Plugin code can end the process while frames are queued.
  process.on('exit', () => void flush());
  return {
    socket: isOverStdio ? undefined : input,
    send: (frame) => sendText(JSON.stringify(frame)),
    sendText,
    queueText(json) {
      queued += `${json}\n`;
    },
    flush,
    sendLast(frame, exitCode) {
      const exit = () => process.exit(exitCode);
      void flush();
      output.write(`${JSON.stringify(frame)}\n`, exit);
      setTimeout(exit, LAST_WORDS_MS);
    },
  };
}

interface Ends {
  input: net.Socket;
  output: net.Socket;
}

function overDescriptor(): Ends {
  const socket = new net.Socket({ fd: CHANNEL_FD, readable: true, writable: true });
  return { input: socket, output: socket };
}

/** Redirects the output of plugin code to stderr, because output on stdout would corrupt the frames. */
function overStdio(): Ends {
  Object.defineProperty(process, 'stdout', { configurable: true, get: () => process.stderr });
  return {
    input: new net.Socket({ fd: 0, readable: true, writable: false }),
    output: new net.Socket({ fd: 1, readable: false, writable: true }),
  };
}
