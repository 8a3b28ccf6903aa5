import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord } from '../../../kit/data/is-record.ts';
import { codeOf, messageOf } from '../../../kit/errors/errors.ts';
import { serverSentEvents } from '../../../kit/streams/server-sent-events.ts';

export interface BridgeRequest {
  method: 'POST';
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
}

export interface StdioBridgeDeps {
  /** Sends a request to the MCP endpoint. Rejects if the gateway is unreachable. */
  send(request: BridgeRequest): Promise<Response>;
  write(line: string): Promise<void>;
}

type RpcId = string | number;
type RpcMessage = Record<string, unknown>;

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const INTERNAL_ERROR = -32603;
const PARSE_ERROR = -32700;
/** A gateway that restarts is back within this time. */
const RETRY_MS = 30_000;
const RETRY_DELAY_MS = 500;
const LOST_ANSWER =
  'The connection ended before the answer. The call may have taken effect: check its result before you repeat it.';

/** Passes JSON-RPC messages between lines of text and the MCP endpoint. */
export class StdioBridge {
  readonly #deps: StdioBridgeDeps;
  readonly #open = new Map<RpcId, AbortController>();
  readonly #exchanges = new Set<Promise<void>>();
  /** Revision that the client has agreed on with `initialize`. */
  #version: string | undefined;
  /** Session that the gateway has begun with `initialize`. */
  #session: string | undefined;

  constructor(deps: StdioBridgeDeps) {
    this.#deps = deps;
  }

  /** Takes one line of the client. Answers are written when they arrive. */
  take(line: string): void {
    if (line.trim() === '') return;
    const exchange = this.#exchange(line).finally(() => this.#exchanges.delete(exchange));
    this.#exchanges.add(exchange);
  }

  /** Resolves when all messages taken so far are answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#exchanges);
  }

  async #exchange(line: string): Promise<void> {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return this.#write(failure(null, PARSE_ERROR, 'The line is not JSON.'));
    }
    const { id, method, params } = isRecord(message) ? message : {};
    const controller = new AbortController();
    if (method === 'notifications/cancelled') this.#cancel(params);
    const { signal } = controller;
    if (!isId(id)) return this.#post(line, message, signal).catch(() => {});
    this.#open.set(id, controller);
    try {
      await this.#post(line, message, signal);
      // `#pass` has removed the id of an answered request.
      const isLost = typeof method === 'string' && this.#open.get(id) === controller && !signal.aborted;
      if (isLost) await this.#write(failure(id, INTERNAL_ERROR, LOST_ANSWER));
    } catch (error) {
      if (!signal.aborted) await this.#write(failure(id, INTERNAL_ERROR, messageOf(error)));
    } finally {
      if (this.#open.get(id) === controller) this.#open.delete(id);
    }
  }

  /** Ends the request that the client no longer waits for. The platform then cancels the call. */
  #cancel(params: unknown): void {
    const requestId = isRecord(params) ? params.requestId : undefined;
    if (isId(requestId)) this.#open.get(requestId)?.abort();
  }

  async #post(body: string, message: unknown, signal: AbortSignal): Promise<void> {
    const response = await this.#sendUntilUp({
      method: 'POST',
      headers: this.#headersOf(message),
      body,
      signal,
    });
    this.#session = response.headers.get('mcp-session-id') ?? this.#session;
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) {
      for await (const { data } of serverSentEvents(response.body!)) if (data) await this.#pass(data);
      return;
    }
    const text = await response.text();
    if (text === '') return;
    await this.#pass(isRpc(text) ? text : rpcError(message, response.status, text));
  }

  /** Waits for a gateway that is restarting. Only refused connections are tried again: nothing was sent on them. */
  async #sendUntilUp(request: BridgeRequest): Promise<Response> {
    for (let waited = 0; ; waited += RETRY_DELAY_MS) {
      try {
        return await this.#deps.send(request);
      } catch (error) {
        if (waited >= RETRY_MS || !isRefused(error)) throw error;
        await sleep(RETRY_DELAY_MS, undefined, { signal: request.signal });
      }
    }
  }

  #headersOf(message: unknown): Record<string, string> {
    const { method, params } = (isRecord(message) ? message : {}) as RpcMessage;
    const { _meta, name, uri, taskId } = isRecord(params) ? params : ({} as RpcMessage);
    const target = name ?? uri ?? taskId;
    const ownVersion = isRecord(_meta) ? _meta[VERSION_KEY] : undefined;
    const version = ownVersion ?? this.#version;
    return {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(typeof version === 'string' && method !== 'initialize' ? { 'mcp-protocol-version': version } : {}),
      // Revision 2026-07-28 repeats these fields in headers.
      ...(ownVersion !== undefined && typeof method === 'string' ? { 'mcp-method': method } : {}),
      ...(ownVersion !== undefined && typeof target === 'string' ? { 'mcp-name': target } : {}),
      ...(this.#session !== undefined && method !== 'initialize' ? { 'mcp-session-id': this.#session } : {}),
    };
  }

  async #pass(text: string): Promise<void> {
    const message: unknown = JSON.parse(text);
    const { id, method, result } = isRecord(message) ? message : {};
    if (isId(id) && method === undefined) this.#open.delete(id);
    if (isRecord(result) && typeof result.protocolVersion === 'string')
      this.#version = result.protocolVersion;
    await this.#write(message);
  }

  #write(message: unknown): Promise<void> {
    return this.#deps.write(JSON.stringify(message));
  }
}

const isId = (value: unknown): value is RpcId => typeof value === 'string' || typeof value === 'number';

function isRpc(text: string): boolean {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) || (isRecord(parsed) && parsed.jsonrpc === '2.0');
  } catch {
    return false;
  }
}

/** Returns the answer to a message that the gateway refused before the MCP endpoint, such as for its token. */
function rpcError(message: unknown, status: number, text: string): string {
  const id = isRecord(message) && isId(message.id) ? message.id : null;
  return JSON.stringify(
    failure(id, INTERNAL_ERROR, `The gateway answered ${status}: ${text.slice(0, 1000)}`),
  );
}

function failure(id: RpcId | null, code: number, message: string) {
  return { jsonrpc: '2.0', id, error: { code, message } };
}

function isRefused(error: unknown): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    if (codeOf(at) === 'ECONNREFUSED') return true;
  return false;
}
