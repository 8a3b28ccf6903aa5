import type { FastifyRequest } from 'fastify';
import { defineDaemon } from '../define-daemon.ts';
import { authRoutes } from './routes/auth.ts';
import { clientRoutes } from './routes/clients.ts';
import { hostRoutes } from './routes/hosts.ts';
import { proxyRoutes } from './routes/proxy.ts';
import { tokenRoutes } from './routes/tokens.ts';
import { gatewayServices } from './services.ts';

/** The single entry point for clients. @spec What the service does */
export const gateway = defineDaemon({
  name: 'gateway',
  defaultPort: 4000,
  services: gatewayServices,
  routes: [authRoutes, hostRoutes, clientRoutes, tokenRoutes, proxyRoutes],
  standard: { guardMetrics },
  bodyLimitBytes: (config) => config.gateway.bodyLimitBytes,
  async close({ upstreamClient, revocations, close }) {
    revocations.close();
    await upstreamClient.close();
    await close();
  },
});

/** Metrics are for this machine, and for whoever has a token. A forwarded call only looks local. @spec docs/decisions.md "Open paths" */
async function guardMetrics(request: FastifyRequest): Promise<void> {
  const forwarded =
    request.headers['x-forwarded-for'] !== undefined || request.headers.forwarded !== undefined;
  if (isLoopback(request.socket.remoteAddress) && !forwarded) return;
  await request.server.kit.authenticate(request);
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && (address === '::1' || /^(?:::ffff:)?127\./.test(address));
}
