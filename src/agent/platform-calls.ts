import { type GatewayFrame, HOST_SOCKET } from '../contracts/index.ts';
import type { BoundedCache } from '../kit/data/bounded-cache.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import { keepTenantSecret } from '../kit/telemetry/redact.ts';
import type { PlatformCallContext, PlatformServices } from '../plugins/index.ts';
import type { Link } from './link.ts';
import { remoteError } from './remote-error.ts';

const MAX_LOG_LEVEL_CHARS = 16;
const MAX_LOG_CHARS = 8192;

export interface PlatformCallsDeps {
  /**
   * Functions that the backend calls when a handler uses a service of `ctx`. `offer` replaces all of these functions.
   */
  services: PlatformServices;
  running: ReadonlyMap<string, { link: Link }>;
  /**
   * Connections by execution id. Cancelled executions stay in the cache, so that their last log lines reach the
   * gateway.
   */
  accepted: Pick<BoundedCache<Link>, 'get'>;
}

/** Methods of `ctx` that return a secret. */
const SECRET_METHODS = new Set(['secrets.get', 'connections.token']);

interface PendingCall {
  link: Link;
  /** Namespace and name of the secret that the reply contains, if any. */
  secret: { namespaceId: string; name: string } | undefined;
  resolve(value: unknown): void;
  reject(error: PlatformError): void;
}

/** Forwards the calls that handlers make to services of `ctx` to the gateway. */
export class PlatformCalls {
  readonly #deps: PlatformCallsDeps;
  readonly #pending = new Map<number, PendingCall>();
  #lastCallId = 0;

  constructor(deps: PlatformCallsDeps) {
    this.#deps = deps;
  }

  /**
   * Replaces the services of `ctx` with the services that the gateway provides. `offered` lists the methods of each
   * service.
   */
  offer(offered: Record<string, string[]>): void {
    const { services } = this.#deps;
    for (const name of Object.keys(services)) delete services[name];
    for (const [service, methods] of Object.entries(offered)) {
      services[service] = Object.fromEntries(
        methods.map((method) => [method, (context, args) => this.#call(service, method, context, args)]),
      );
    }
    services.log = { write: (context, args) => this.#log(context, args) };
  }

  settle(callId: number, outcome: Extract<GatewayFrame, { type: 'reply' }>['outcome']): void {
    const call = this.#pending.get(callId);
    this.#pending.delete(callId);
    if (outcome.ok) {
      // Output of plugin code outside of a call goes to the log of this process, so it must be masked here.
      if (call?.secret && typeof outcome.value === 'string') keepTenantSecret(call.secret, outcome.value);
      call?.resolve(outcome.value);
    } else call?.reject(remoteError(outcome.error));
  }

  /** Rejects the pending calls of a closed connection. */
  abandon(link: Link): void {
    for (const [callId, call] of this.#pending) {
      if (call.link !== link) continue;
      this.#pending.delete(callId);
      call.reject(lost());
    }
  }

  #call(
    service: string,
    method: string,
    { request, signal }: PlatformCallContext,
    args: unknown[],
  ): Promise<unknown> {
    const { executionId, tenantId } = request;
    const link = this.#deps.running.get(executionId)?.link;
    const id = `${service}.${method}`;
    const secret = SECRET_METHODS.has(id)
      ? { namespaceId: tenantId, name: `${service} ${String(args[0])}` }
      : undefined;
    if (!link || signal.aborted) return Promise.reject(lost());
    const callId = ++this.#lastCallId;
    return new Promise((resolve, reject) => {
      this.#pending.set(callId, { link, secret, resolve, reject });
      if (link.send({ type: 'call', callId, executionId, service, method, args })) return;
      this.#pending.delete(callId);
      reject(tooLarge(`call of ctx.${service}`));
    });
  }

  #log({ request }: PlatformCallContext, [level, message, meta]: unknown[]): Promise<void> {
    const { executionId } = request;
    const text = typeof message === 'string' ? message : String(JSON.stringify(message));
    this.#deps.accepted.get(executionId)?.send({
      type: 'log',
      executionId,
      level: String(level).slice(0, MAX_LOG_LEVEL_CHARS),
      message: text.slice(0, MAX_LOG_CHARS),
      ...(typeof meta === 'object' && meta !== null ? { meta: meta as Record<string, unknown> } : {}),
    });
    return Promise.resolve();
  }
}

export function tooLarge(item: string): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The ${item} exceeds ${HOST_SOCKET.agentFrameBytes} bytes, the limit of a frame from a host.`,
    { details: { maxBytes: HOST_SOCKET.agentFrameBytes } },
  );
}

function lost(): PlatformError {
  return new PlatformError('HOST_UNAVAILABLE', 'The connection of this host to the gateway was lost.');
}
