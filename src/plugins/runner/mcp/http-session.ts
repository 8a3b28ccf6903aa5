import type { McpServer } from '../../../contracts/mcp-servers.ts';
import { serverSentEvents } from '../../../kit/streams/server-sent-events.ts';
import { messageOf } from '../failure.ts';
import { DISCARD_BODY } from '../fetch.ts';
import { parseMessage, Rpc, ServerFailure } from './rpc.ts';
import { initialise, type Session } from './session.ts';

const MAX_BODY_IN_ERROR = 300;

export interface HttpStart {
  server: McpServer;
  /** Headers of each request, secrets included. */
  headers: Record<string, string>;
  /** Sends through the platform, which checks hosts and addresses. Belongs to the current call. */
  fetch(): typeof globalThis.fetch;
}

/** Opens a session with a server that speaks over HTTP (Streamable HTTP). */
export async function connectServer(start: HttpStart, signal: AbortSignal): Promise<Session> {
  const session = new HttpSession(start);
  await initialise(session.rpc, signal, (version) => {
    session.version = version;
  });
  return session;
}

class HttpSession implements Session {
  readonly rpc: Rpc;
  readonly #start: HttpStart;
  #sessionId: string | undefined;
  #isOpen = true;
  version: string | undefined;

  constructor(start: HttpStart) {
    this.#start = start;
    this.rpc = new Rpc(
      (message) => this.#post(message),
      (reason) => this.#end(reason),
    );
  }

  isOpen(): boolean {
    return this.#isOpen;
  }

  // The end of the call aborts its request, and each request has a connection of its own.
  probe(): void {}

  close(): void {
    this.#end('it was closed');
  }

  async #post(message: object): Promise<void> {
    const isRequest = 'id' in message && 'method' in message;
    try {
      const response = await this.#start.fetch()(this.#start.server.url!, {
        method: 'POST',
        // A redirect could lead the secrets of the headers to another host.
        redirect: 'error',
        headers: {
          ...this.#start.headers,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...(this.version === undefined ? {} : { 'mcp-protocol-version': this.version }),
          ...(this.#sessionId === undefined ? {} : { 'mcp-session-id': this.#sessionId }),
        },
        body: JSON.stringify(message),
        // Other messages are answered by the status alone. Some servers add a text, or a stream that does not end.
        ...(isRequest ? {} : { [DISCARD_BODY]: true }),
      });
      if (!response.ok)
        throw new ServerFailure(`it answered ${response.status}: ${excerpt(await response.text())}`);
      this.#sessionId ??= response.headers.get('mcp-session-id') ?? undefined;
      if (!isRequest) return;
      for (const one of await messagesOf(response)) this.rpc.receive(one);
      this.rpc.expire((message as { id: number }).id);
    } catch (error) {
      const failure =
        error instanceof ServerFailure
          ? error
          : new ServerFailure(`it cannot be reached: ${messageOf(error)}`);
      if (isRequest) this.#end(failure.message);
      throw failure;
    }
  }

  #end(reason: string): void {
    this.#isOpen = false;
    this.rpc.fail(new ServerFailure(reason));
  }
}

/** Returns the messages of a response. */
async function messagesOf(response: Response): Promise<unknown[]> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  const texts = isStream ? await eventsOf(response) : [await response.text()];
  return texts
    .filter((text) => text.trim() !== '')
    .map((text) => {
      const message = parseMessage(text);
      if (message === undefined)
        throw new ServerFailure('it sent a message that is not JSON, or too deep or large');
      return message;
    });
}

/** Returns the data of server-sent events. */
async function eventsOf({ body }: Response): Promise<string[]> {
  const texts: string[] = [];
  try {
    if (body) for await (const { data = '' } of serverSentEvents(ended(body))) texts.push(data);
  } catch (error) {
    if (error instanceof RangeError) throw new ServerFailure(`it sent too much: ${error.message}`);
    throw error;
  }
  return texts;
}

/** Adds the blank line that some servers omit after their last event. */
async function* ended(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* body;
  yield Buffer.from('\n\n');
}

function excerpt(body: string): string {
  return body.replace(/\s+/g, ' ').trim().slice(0, MAX_BODY_IN_ERROR);
}
