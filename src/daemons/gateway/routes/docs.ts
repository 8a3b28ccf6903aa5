import { deliverToInstance, deliverWebhook } from '../../../contracts/index.ts';
import { type Http, serveDocs } from '../../../http/index.ts';
import { version } from '../../../kit/files/paths.ts';
import type { MergedDescription } from '../domain/merged-description.ts';
import { type Upstream, upstreamFor } from '../proxy/upstreams.ts';

/** @spec Health, metrics, specification: /openapi-merged.json, /docs-all */
export function docsRoutes(
  http: Http,
  { mergedDescription, upstreams }: { mergedDescription: MergedDescription; upstreams: readonly Upstream[] },
): void {
  // Not mounted, because `mount` would add them to the description.
  for (const endpoint of [deliverWebhook, deliverToInstance]) {
    const { method, path } = endpoint;
    http.kit.endpoints.push({ method, path, endpoint, authenticated: false });
  }
  http.get('/openapi-merged.json', async () => {
    // Loaded on first use: most gateways never describe schemas.
    const { openApiDocument } = await import('../../../http/openapi.ts');
    return mergedDescription(openApiDocument('gateway', version, http.kit.endpoints));
  });
  serveDocs(http, '/docs-all', '/openapi-merged.json');
  // Shows a page in browsers. An upstream with the prefix "/" keeps its own root.
  if (!upstreamFor(upstreams, '/')) http.get('/', (_request, reply) => reply.redirect('/docs-all', 302));
}
