import type { FastifyRequest } from 'fastify';
import { callMcp, getMcpResource } from '../../../contracts/index.ts';
import { type Authenticate, abortOnDisconnect, type Http, mount } from '../../../http/index.ts';
import { isLoopbackHost } from '../../../kit/config/loopback.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { AuditLog } from '../domain/audit/audit-log.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { InnerCalls } from '../inner-calls.ts';
import { McpEndpoint, type McpParts, sendResponse } from '../mcp/mcp-endpoint.ts';
import type { Upstream } from '../proxy/upstreams.ts';

interface McpServices {
  mcp: Omit<McpParts, 'admins' | 'audit' | 'upstreams' | 'innerCalls'> & {
    isEnabled: boolean;
    /** Registers a listener for changes of what plugins offer. */
    onOffersChanged(listener: () => void): void;
    /** Browser origins that may call. */
    origins: readonly string[];
    issuer: string | null;
    url: () => string;
  };
  admins: Admins;
  audit: AuditLog;
  upstreams: readonly Upstream[];
  innerCalls: InnerCalls;
  authenticateMcp: Authenticate;
}

/** The MCP endpoint and its OAuth metadata. @spec docs/mcp.md */
export function mcpRoutes(http: Http, services: McpServices): void {
  const { mcp, authenticateMcp, ...parts } = services;
  if (!mcp.isEnabled) return;
  const endpoint = new McpEndpoint(http, { ...mcp, ...parts });
  http.addHook('preClose', () => endpoint.close());
  mcp.onOffersChanged(() => void endpoint.offersChanged());

  const authenticate: Authenticate = async (request, reply) => {
    refuseForeignOrigin(request, mcp);
    try {
      return await authenticateMcp(request, reply);
    } catch (thrown) {
      throw withMetadata(thrown, mcp);
    }
  };
  mount(http, callMcp, { auth: 'caller', authenticate }, async ({ request, reply }) => {
    const { signal } = abortOnDisconnect(reply);
    const onClose = (listener: () => void): void => void reply.raw.once('close', listener);
    const response = await endpoint.answer(request, request.caller as Principal, { signal, onClose });
    return sendResponse(reply, response);
  });
  mount(http, getMcpResource, { auth: 'open' }, () => {
    if (mcp.issuer === null)
      throw new PlatformError(
        'NOT_FOUND',
        'The MCP endpoint accepts no tokens of an OAuth issuer: gateway.oauth is not set. Use a token of the platform.',
      );
    return {
      resource: mcp.url(),
      authorization_servers: [mcp.issuer],
      bearer_methods_supported: ['header'] as ['header'],
      resource_name: 'svc platform',
    };
  });
}

/**
 * Refuses requests from web pages of other origins. The endpoint accepts no cookies, so this only limits pages that
 * hold a token, and DNS rebinding.
 */
function refuseForeignOrigin({ headers }: FastifyRequest, { origins, url }: McpServices['mcp']): void {
  const { origin } = headers;
  if (origin === undefined) return;
  const isAllowed =
    URL.canParse(origin) &&
    (isLoopbackHost(new URL(origin).hostname) ||
      new URL(url()).origin === origin ||
      origins.some((one) => one.replace(/\/$/, '') === origin));
  if (isAllowed) return;
  throw new PlatformError(
    'FORBIDDEN',
    `Pages of ${origin.slice(0, 100)} may not call the MCP endpoint. Add the origin to gateway.cors.origins.`,
  );
}

/** Adds the URL of the OAuth metadata to a 401, so that clients find the issuer. @spec RFC 9728, section 5.1 */
function withMetadata(thrown: unknown, { issuer, url }: McpServices['mcp']): unknown {
  if (!(thrown instanceof PlatformError) || thrown.code !== 'UNAUTHORIZED' || issuer === null) return thrown;
  const { code, message, details, cause, headers } = thrown;
  const metadata = new URL(getMcpResource.path, url());
  const challenge = `Bearer resource_metadata="${metadata}"`;
  return new PlatformError(code, message, {
    details,
    cause,
    headers: { ...headers, 'www-authenticate': challenge },
  });
}
