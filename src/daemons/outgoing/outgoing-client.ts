import { lookup as dnsLookup } from 'node:dns';
import type { Agent } from 'undici';
import { PlatformError } from '../../kit/errors/errors.ts';
import { literalAddress, privateKindOf } from '../../plugins/services/addresses.ts';
import { checkedLookup } from '../../plugins/services/guarded-dispatcher.ts';
import { requireHost } from '../../plugins/services/network-permission.ts';
import type { Resolve } from '../../plugins/services/resolve.ts';

export interface OutgoingClientOptions {
  /** Hosts with private addresses that every request may reach, such as `10.0.0.5` or `intranet:8080`. */
  allowedHosts: readonly string[];
  /** Config key of `allowedHosts`, for error messages. */
  setting: string;
  resolve?: Resolve;
}

export interface OutgoingRequest {
  url: string;
  method: string;
  /** Names and values, one after the other. */
  headers: string[];
  body: Uint8Array;
  timeoutMs: number;
  /**
   * Whether the request may reach private addresses, because an operator chose the URL. Otherwise, only public addresses
   * and `allowedHosts` are allowed.
   */
  mayBePrivate: boolean;
  /** Size at which the body of the reply is cut off. Default: 2,048 bytes. */
  maxReplyBytes?: number;
}

export interface OutgoingReply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The first characters of the body. */
  excerpt: string;
  /** Whether the body may be longer than the excerpt. */
  isCut: boolean;
}

const CONNECT_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;
const EXCERPT_BYTES = 2048;

/**
 * Sends requests to URLs that users choose. Each connection checks the address of its own DNS lookup, so that no name
 * can lead to a private address. Redirects are not followed.
 */
export class OutgoingClient {
  readonly #options: OutgoingClientOptions;
  #agents: Promise<{ publicOnly: Agent; anywhere: Agent }> | undefined;

  constructor(options: OutgoingClientOptions) {
    this.#options = options;
  }

  /** Resolves with the reply of any status. Throws PERMISSION_DENIED for a refused address, and network errors. */
  async send(request: OutgoingRequest): Promise<OutgoingReply> {
    const url = new URL(request.url);
    const mayBePrivate = request.mayBePrivate || this.requirePublic(request.url);
    const { publicOnly, anywhere } = await this.#open();
    const { statusCode, headers, body } = await (mayBePrivate ? anywhere : publicOnly).request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: request.method as 'POST',
      headers: request.headers,
      body: request.body,
      signal: AbortSignal.timeout(request.timeoutMs),
    });
    const { maxReplyBytes = EXCERPT_BYTES } = request;
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
      // Leaving the loop destroys the body, so that an endless one does not occupy the connection.
      if (bytes >= maxReplyBytes) break;
    }
    const excerpt = Buffer.concat(chunks).subarray(0, maxReplyBytes).toString('utf8');
    return { status: statusCode, headers, excerpt, isCut: bytes >= maxReplyBytes };
  }

  /**
   * Throws PERMISSION_DENIED for a URL whose host is a private address that `allowedHosts` does not contain. Returns
   * whether the host is allowed to have a private address. Names are resolved at each connection.
   */
  requirePublic(text: string): boolean {
    const url = new URL(text);
    const { allowedHosts } = this.#options;
    const { mayBePrivate } = requireHost(url, ['*', ...allowedHosts], allowedHosts);
    const address = literalAddress(url.hostname);
    if (address !== null && !mayBePrivate) this.#refusePrivate(url.hostname, address);
    return mayBePrivate;
  }

  async close(): Promise<void> {
    const agents = await this.#agents;
    await Promise.all([agents?.publicOnly.destroy(), agents?.anywhere.destroy()]);
  }

  /** Opens the agents on first use, because loading undici takes time. */
  #open(): Promise<{ publicOnly: Agent; anywhere: Agent }> {
    this.#agents ??= import('undici').then(({ Agent }) => {
      const { resolve = dnsLookup } = this.#options;
      const agent = (check: (host: string, address: string) => void) =>
        new Agent({
          connect: { lookup: checkedLookup(resolve, check), timeout: CONNECT_MS },
          keepAliveTimeout: KEEP_ALIVE_MS,
        });
      return {
        publicOnly: agent((host, address) => this.#refusePrivate(host, address)),
        anywhere: agent((host, address) => this.#refuseLocalServices(host, address)),
      };
    });
    return this.#agents;
  }

  #refusePrivate(host: string, address: string): void {
    const kind = privateKindOf(address);
    if (kind) throw this.#denied(host, address, kind);
  }

  /** A name never leads to link-local addresses and cloud metadata services. A URL may contain such an address. */
  #refuseLocalServices(host: string, address: string): void {
    const kind = privateKindOf(address);
    if (kind === 'link-local' || kind === 'metadata') throw this.#denied(host, address, kind);
  }

  #denied(host: string, address: string, kind: string): PlatformError {
    const { setting } = this.#options;
    return new PlatformError(
      'PERMISSION_DENIED',
      `Requests to ${host} are refused: ${host === address ? 'it is' : `it resolves to ${address},`} a ${kind} address. An operator can connect it, or list "${host}" under ${setting}.`,
      { details: { host, address, kind, permission: setting } },
    );
  }
}
