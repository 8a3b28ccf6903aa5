import {
  apiHealth,
  apiReady,
  type Degradation,
  type Endpoint,
  type Health,
  health,
  ready,
} from '../contracts/index.ts';
import { errorBody } from '../kit/errors/errors.ts';
import { version } from '../kit/files/paths.ts';
import { sendDocsAsset } from './docs-assets.ts';
import type { Http } from './http-kit.ts';
import { mount } from './mount.ts';
import { notReady, type Readiness } from './readiness.ts';

export interface StandardRoutes {
  /** Health endpoints. The REST API serves only `/api/v1/health`, and other services also serve `/health`. */
  health: readonly Endpoint[];
  ready: readonly Endpoint[];
  metricsPaths: readonly string[];
  isDraining: () => boolean;
  readiness: Readiness;
  /** Returns the faults that currently degrade the service. */
  degradations?: (() => readonly Degradation[]) | undefined;
  /** Throws if the request is not allowed to read metrics. */
  guardMetrics?: (request: Parameters<Http['kit']['authenticate']>[0]) => void | Promise<void>;
}

export const STANDARD_ROUTES: Omit<StandardRoutes, 'isDraining' | 'readiness' | 'degradations'> = {
  health: [health, apiHealth],
  ready: [ready, apiReady],
  metricsPaths: ['/metrics'],
};

/**
 * Mounts the routes that all services have: health, readiness, metrics, OpenAPI description and docs. @spec Health,
 * metrics, specification
 */
export function standardRoutes(http: Http, routes: StandardRoutes): void {
  const { service, clock, metrics } = http.kit;
  const startedAt = clock.monotonic();
  for (const endpoint of routes.health) {
    mount(http, endpoint, { auth: 'open' }, (): Health => {
      const degraded = [...(routes.degradations?.() ?? [])];
      const serving = degraded.length > 0 ? 'degraded' : 'ok';
      return {
        status: routes.isDraining() ? 'draining' : serving,
        service,
        version,
        uptimeMs: clock.monotonic() - startedAt,
        ...(degraded.length > 0 ? { degraded } : {}),
      };
    });
  }
  for (const endpoint of routes.ready) mountReady(http, endpoint, routes.readiness);
  for (const path of routes.metricsPaths) {
    http.get(path, async (request, reply) => {
      await routes.guardMetrics?.(request);
      return reply.type(metrics.registry.contentType).send(await metrics.render());
    });
  }
  http.get('/openapi.json', async () => {
    const { openApiDocument } = await import('./openapi.ts');
    return openApiDocument(service, version, http.kit.endpoints, await http.kit.describeEvents?.());
  });
  serveDocs(http, '/docs', '/openapi.json');
}

function mountReady(http: Http, endpoint: Endpoint, readiness: Readiness): void {
  const { service } = http.kit;
  mount(http, endpoint, { auth: 'open' }, async ({ reply }) => {
    reply.header('cache-control', 'no-store');
    const reasons = await readiness.reasons();
    if (reasons.length === 0) return { ready: true, service };
    // The error is sent instead of thrown. A thrown 503 would be logged as an error at each probe of a load balancer.
    return reply
      .code(503)
      .header('retry-after', '1')
      .send(errorBody(notReady(service, reasons)));
  });
}

/** Serves Swagger UI from local files, so that it works offline. */
export function serveDocs(http: Http, path: string, specPath: string): void {
  const csp =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'";
  http.get(path, (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', csp).send(docsPage(path)),
  );
  http.get(`${path}/start.js`, (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').send(startScript(specPath)),
  );
  http.get<{ Params: { asset: string } }>(`${path}/assets/:asset`, (request, reply) =>
    sendDocsAsset(request.params.asset, request, reply),
  );
}

function docsPage(path: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>svc API</title>
<link rel="stylesheet" href="${path}/assets/swagger-ui.css">
<link rel="icon" href="${path}/assets/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="${path}/assets/swagger-ui-bundle.js"></script>
<script src="${path}/start.js"></script>
</body>
</html>
`;
}

function startScript(specPath: string): string {
  return `SwaggerUIBundle({ url: ${JSON.stringify(specPath)}, dom_id: '#swagger-ui', deepLinking: true, validatorUrl: null });\n`;
}
