import { lookup as dnsLookup } from 'node:dns';
import type { Agent, Dispatcher } from 'undici';
import { PlatformError } from '../../kit/errors/errors.ts';
import { checkedLookup } from '../../plugins/services/guarded-dispatcher.ts';
import type { Resolve } from '../../plugins/services/resolve.ts';
import { type AddressRules, requireAllowedAddress, requireAllowedUrl } from './endpoint-address.ts';

export interface SignedRequest {
  url: URL;
  /** Names and values, one after the other. */
  headers: string[];
  body: Uint8Array;
  timeoutMs: number;
  /** Whether `outgoing.allowPrivateAddresses` does not apply. */
  publicOnly?: boolean;
  /** Ends the request when the service stops. */
  signal?: AbortSignal;
}

export interface MessageReply {
  status: number;
  retryAfter: string | null;
  /** The first bytes of the body. */
  excerpt: Buffer;
}

const CONNECT_MS = 10_000;
const KEEP_ALIVE_MS = 4000;
const MAX_EXCERPT_BYTES = 2048;
/** A longer body is not read to its end. */
const MAX_READ_BYTES = 64 * 1024;
const EMPTY = Buffer.alloc(0);

/** Sends messages to URLs that users choose. Each connection checks the address of its own DNS lookup. */
export class MessageClient {
  readonly #rules: AddressRules;
  readonly #resolve: Resolve;
  #agents: Promise<{ publicOnly: Agent; anywhere: Agent }> | undefined;
  #opened: { publicOnly: Agent; anywhere: Agent } | undefined;

  constructor(rules: AddressRules, resolve: Resolve = dnsLookup) {
    this.#rules = rules;
    this.#resolve = resolve;
  }

  /** Throws PERMISSION_DENIED if the rules refuse the URL itself. */
  requireAllowed(url: URL, publicOnly: boolean): void {
    requireAllowedUrl(url, this.#rulesOf(publicOnly));
  }

  /** Resolves with the reply of any status. Rejects for a refused address, a timeout and a network error. */
  async send(request: SignedRequest): Promise<MessageReply> {
    const rules = this.#rulesOf(request.publicOnly === true);
    const { mayBePrivate } = requireAllowedUrl(request.url, rules);
    const { publicOnly, anywhere } = this.#opened ?? (await this.#open());
    return new Promise((resolve, reject) => {
      const receiver = new Receiver(request, resolve, reject);
      const { url, headers, body } = request;
      (mayBePrivate ? anywhere : publicOnly).dispatch(
        { origin: url.origin, path: `${url.pathname}${url.search}`, method: 'POST', headers, body },
        receiver,
      );
    });
  }

  #rulesOf(publicOnly: boolean): AddressRules {
    return publicOnly ? { ...this.#rules, allowPrivateAddresses: false } : this.#rules;
  }

  async close(): Promise<void> {
    const agents = await this.#agents;
    await Promise.all([agents?.publicOnly.destroy(), agents?.anywhere.destroy()]);
  }

  #open(): Promise<{ publicOnly: Agent; anywhere: Agent }> {
    this.#agents ??= import('undici').then((undici) => {
      const agent = (mayBePrivate: boolean) =>
        new undici.Agent({
          connect: {
            lookup: checkedLookup(this.#resolve, (host, address) =>
              requireAllowedAddress(host, address, { mayBePrivate }),
            ),
            timeout: CONNECT_MS,
          },
          keepAliveTimeout: KEEP_ALIVE_MS,
          // The receiver has one time limit for the whole request.
          headersTimeout: 0,
          bodyTimeout: 0,
        });
      this.#opened = { publicOnly: agent(false), anywhere: agent(true) };
      return this.#opened;
    });
    return this.#agents;
  }
}

/** Collects the start of a reply. Redirects are replies like all others. */
class Receiver implements Dispatcher.DispatchHandler {
  readonly #resolve: (reply: MessageReply) => void;
  readonly #reject: (error: unknown) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #abort = (): void =>
    this.#fail(new PlatformError('SERVICE_UNAVAILABLE', 'The service is stopping'));
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #retryAfter: string | null = null;
  #excerpt: Buffer = EMPTY;
  #bytes = 0;
  #isSettled = false;

  constructor(
    { timeoutMs, signal }: SignedRequest,
    resolve: (reply: MessageReply) => void,
    reject: (error: unknown) => void,
  ) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = signal;
    this.#timer = setTimeout(
      () => this.#fail(new PlatformError('UPSTREAM_TIMEOUT', `No answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    signal?.addEventListener('abort', this.#abort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isSettled) controller.abort(new Error('The request has ended'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    const after = headers['retry-after'];
    this.#retryAfter = typeof after === 'string' ? after : null;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = MAX_EXCERPT_BYTES - this.#excerpt.byteLength;
    if (room > 0) this.#excerpt = Buffer.concat([this.#excerpt, chunk.subarray(0, room)]);
    this.#bytes += chunk.byteLength;
    if (this.#bytes <= MAX_READ_BYTES) return;
    this.#succeed();
    this.#controller?.abort(new Error('The answer is too long'));
  }

  onResponseEnd(): void {
    this.#succeed();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #succeed(): void {
    if (!this.#settle()) return;
    this.#resolve({ status: this.#status, retryAfter: this.#retryAfter, excerpt: this.#excerpt });
  }

  #fail(error: Error): void {
    if (!this.#settle()) return;
    this.#reject(error);
    this.#controller?.abort(error);
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#abort);
    return true;
  }
}
