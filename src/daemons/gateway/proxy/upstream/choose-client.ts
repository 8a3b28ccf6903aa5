import type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from './client.ts';

/**
 * Upstream client that combines two clients. Unencrypted HTTP requests to this machine use `near`. All other requests
 * use `far`.
 */
export class ChoosingClient implements UpstreamClient {
  readonly #near: UpstreamClient;
  readonly #far: UpstreamClient;
  readonly #chosen = new Map<string, UpstreamClient>();

  constructor(near: UpstreamClient, far: UpstreamClient) {
    this.#near = near;
    this.#far = far;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const client = this.#chosen.get(request.origin) ?? this.#choose(request.origin);
    return client.send(request, handler);
  }

  async close(): Promise<void> {
    await Promise.all([this.#near.close(), this.#far.close()]);
  }

  #choose(origin: string): UpstreamClient {
    const { protocol, hostname } = new URL(origin);
    const isLocal = hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
    const client = protocol === 'http:' && isLocal ? this.#near : this.#far;
    this.#chosen.set(origin, client);
    return client;
  }
}
