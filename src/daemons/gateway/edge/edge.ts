import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { deliverToInstance, deliverWebhook } from '../../../contracts/index.ts';
import { type Http, isDelivery, type JudgeOrigin, originForm } from '../../../http/index.ts';
import { answerHalfClosed, pendingResponse } from '../../../kit/process/node-internals.ts';
import type { WebhookDelivery } from '../domain/webhooks/receive/delivery.ts';
import { PROXIED_METHODS } from '../proxy/proxied-call.ts';
import { Deliveries, type DeliveriesServices } from './deliveries.ts';
import { ProxiedCalls, type ProxiedCallsServices } from './proxied-calls.ts';
import { type EdgeMatch, type EdgeRoute, EdgeRouter } from './router.ts';
import { Upgrades, type UpgradesServices } from './upgrades.ts';

/** Paths of deliveries to sources. The token is for senders that sign nothing. */
const SOURCE_PATHS = ['/in/:namespaceId/:source', '/in/:namespaceId/:source/:token'];

export interface EdgeServices extends ProxiedCallsServices, UpgradesServices, DeliveriesServices {
  delivery: WebhookDelivery;
  /** CORS check. Null if no origins are allowed. */
  judgeOrigin: JudgeOrigin | null;
}

/**
 * Creates the gateway's request listener. The listener serves deliveries, proxied calls and WebSocket upgrades. Fastify
 * serves the gateway's own endpoints.
 */
export function gatewayEdge(http: Http, services: EdgeServices): RequestListener {
  const edge = new Edge(http, services);
  // Upstream routes are added last, so that Fastify's own routes take precedence.
  http.addHook('onReady', async () => edge.addRoutes());
  http.addHook('preClose', async () => services.proxySocket.closeAll());
  return edge.serve;
}

/** Methods of handshakes that are no deliveries. */
const HANDSHAKE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

class Edge {
  readonly #http: Http;
  readonly #services: EdgeServices;
  readonly #router = new EdgeRouter();
  /** Paths of deliveries, for requests with other methods that may be handshakes. */
  readonly #handshakes = new EdgeRouter();
  readonly #deliveries: Deliveries;
  readonly #proxiedCalls: ProxiedCalls;

  constructor(http: Http, services: EdgeServices) {
    const { kit, server } = http;
    this.#http = http;
    this.#services = services;
    this.#deliveries = new Deliveries(kit, services);
    this.#proxiedCalls = new ProxiedCalls(kit, services);
    server.on('upgrade', new Upgrades(kit, this.#router, services).serve);
    answerHalfClosed(server);
    server.on('connection', (socket: Socket) => socket.on('end', () => endUnlessDelivering(socket)));
  }

  readonly serve = (request: IncomingMessage, response: ServerResponse): void => {
    request.url = originForm(request);
    const match = this.#findHandshake(request) ?? this.#router.find(request.method!, request.url);
    switch (match?.route.kind) {
      case 'delivery':
      case 'source':
        this.#deliveries.serve(request, response, match);
        break;
      case 'proxied':
        this.#serveProxied(request, response, match.route);
        break;
      default:
        this.#http.routing(request, response);
    }
  };

  /**
   * Returns the route of a request whose method the addressed webhook declares for a handshake. Any other request
   * with a method other than POST is served as if there were no handshakes.
   */
  #findHandshake({ method, url }: IncomingMessage): EdgeMatch | undefined {
    if (method === 'POST' || !isDelivery(url!)) return undefined;
    const match = this.#handshakes.find(method!, url!);
    if (!match) return undefined;
    const { pluginId, event, namespaceId, source } = match.params;
    const isTaken =
      match.route.kind === 'source'
        ? this.#services.sourceArrivals.takesHandshake(namespaceId!, source!, method!)
        : this.#services.delivery.takesHandshake(pluginId!, event!, method!);
    return isTaken ? match : undefined;
  }

  #serveProxied(
    request: IncomingMessage,
    response: ServerResponse,
    route: EdgeRoute & { kind: 'proxied' },
  ): void {
    const verdict = this.#services.judgeOrigin?.(request);
    // Fastify answers all CORS preflight requests.
    if (verdict?.isPreflight) this.#http.routing(request, response);
    else this.#proxiedCalls.serve(request, response, route, verdict?.headers ?? null);
  }

  addRoutes(): void {
    const { routes } = this.#http.kit;
    for (const { method, path } of routes)
      this.#router.add(method === 'GET' ? ['GET', 'HEAD'] : [method], { kind: 'native', pattern: path });
    for (const { method, path } of [deliverWebhook, deliverToInstance])
      this.#addDelivery(method, { kind: 'delivery', pattern: path });
    for (const path of SOURCE_PATHS) this.#addDelivery('POST', { kind: 'source', pattern: path });
    for (const upstream of this.#services.upstreams) {
      for (const prefix of upstream.prefixes) {
        for (const pattern of [prefix || '/', `${prefix}/*`])
          this.#add(PROXIED_METHODS, { kind: 'proxied', pattern, upstream });
      }
    }
  }

  #addDelivery(method: string, route: EdgeRoute): void {
    this.#add([method], route);
    this.#handshakes.add(HANDSHAKE_METHODS, route);
  }

  /** Adds a route to the router. Also adds the route to the list for the `Allow` header of 405 responses. */
  #add(methods: readonly string[], route: EdgeRoute): void {
    this.#router.add(methods, route);
    for (const method of methods) this.#http.kit.routes.push({ method, path: route.pattern });
  }
}

/**
 * Called after the client has closed its sending side. Closes the connection if a response is pending, except for
 * deliveries, which are still answered.
 */
function endUnlessDelivering(socket: Socket): void {
  const pending = pendingResponse(socket);
  if (pending && !isDelivery(pending.req.url!)) socket.end();
}
