import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import type { McpServer } from '../../../contracts/mcp-servers.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { createLineReader } from '../../line-reader.ts';
import { parseMessage, Rpc, ServerFailure, ServerRefusal } from './rpc.ts';
import { initialise, type Session } from './session.ts';

/** Largest message of a server. A result is smaller, but a list of tools can have many schemas. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Lines that are not messages. Some servers print a greeting. */
const MAX_OTHER_LINES = 100;
const MAX_STDERR_CHARS = 1000;
/** Time in which a server must react after a request was given up. */
const PROBE_MS = 400;

export interface StdioStart {
  root: string;
  server: McpServer;
  /** Variables of the server's environment, secrets included. */
  env: Record<string, string>;
}

/** Starts a server as a child process, inside the sandbox of this process. */
export async function startServer(start: StdioStart, signal: AbortSignal): Promise<Session> {
  const server = new ServerProcess(start);
  try {
    await initialise(server.rpc, signal);
    return server;
  } catch (error) {
    server.close();
    throw server.explained(error);
  }
}

class ServerProcess implements Session {
  readonly rpc: Rpc;
  readonly #child: ChildProcess;
  #stderr = '';
  #otherLines = 0;
  #failure: ServerFailure | undefined;

  constructor({ root, server, env }: StdioStart) {
    this.#child = spawn(process.execPath, [...nodeOptions(), join(root, server.entry!), ...server.args], {
      cwd: '/tmp',
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const { stdin, stdout, stderr } = this.#child;
    this.rpc = new Rpc(
      async (message) => {
        if (!this.#failure) stdin!.write(`${JSON.stringify(message)}\n`);
      },
      (reason) => this.#end(reason),
    );
    const reader = createLineReader(MAX_MESSAGE_BYTES, (line) => this.#take(line));
    stdout!.on('data', (chunk: Buffer) => {
      if (this.#failure) return;
      if (!reader.push(chunk)) this.#end(`it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`);
    });
    stderr!.on('data', (chunk: Buffer) => this.#log(chunk.toString('utf8')));
    for (const stream of [stdin!, stdout!, stderr!]) stream.on('error', () => {});
    this.#child.on('error', (error) => this.#end(`it could not be started: ${error.message}`));
    this.#child.on('close', (code, ended) =>
      this.#end(
        `it ended with ${ended === null ? `exit code ${code}` : `signal ${ended}`}${this.#stderrSuffix()}`,
      ),
    );
  }

  isOpen(): boolean {
    return this.#failure === undefined;
  }

  probe(): void {
    const limit = new AbortController();
    const stop = systemClock.after(PROBE_MS, () => limit.abort(new Error('no answer')));
    this.rpc
      .request('ping', {}, limit.signal)
      .catch((error) => {
        if (!(error instanceof ServerRefusal)) this.#end('it does not answer');
      })
      .finally(stop);
  }

  close(): void {
    this.#end('it was stopped');
  }

  /** Adds the reason why the process has ended, which is more telling than a closed pipe. */
  explained(error: unknown): unknown {
    return error instanceof ServerFailure && this.#failure && !this.#failure.message.startsWith('it was')
      ? this.#failure
      : error;
  }

  #take(line: string): void {
    if (this.#failure) return;
    const text = line.trim();
    if (text === '') return;
    const message = parseMessage(text);
    if (message !== undefined) this.rpc.receive(message);
    else if (text.startsWith('{') || ++this.#otherLines > MAX_OTHER_LINES)
      this.#end('it sent a message that is not JSON, or too deep or large');
  }

  #end(reason: string): void {
    if (this.#failure) return;
    this.#failure = new ServerFailure(reason);
    // The handle is used, because `process.kill` is denied in this process.
    this.#child.kill('SIGKILL');
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream?.destroy();
    this.rpc.fail(this.#failure);
  }

  /** Passes the log of the server on to the log of the plugin, which limits its lines. Drops what does not fit. */
  #log(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_CHARS);
    if (!process.stderr.writableNeedDrain) process.stderr.write(text);
  }

  #stderrSuffix(): string {
    const text = this.#stderr.trim();
    return text === '' ? '' : `: ${text}`;
  }
}

/**
 * Options of Node for the server. The kernel confines it, so Node's permission model, which it inherits on newer
 * versions, may allow what servers commonly use.
 */
function nodeOptions(): string[] {
  const heap = process.execArgv.filter((option) => option.startsWith('--max-old-space-size='));
  const inherited = process.permission ? ['--allow-worker', '--allow-addons', '--allow-net'] : [];
  return [
    '--no-warnings',
    ...heap,
    ...inherited.filter((flag) => process.allowedNodeEnvironmentFlags.has(flag)),
  ];
}
