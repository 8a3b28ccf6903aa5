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
  // Served past `mount`, which describes what it mounts.
  for (const endpoint of [deliverWebhook, deliverToInstance]) {
    const { method, path } = endpoint;
    http.kit.endpoints.push({ method, path, endpoint, authenticated: false });
  }
  http.get('/openapi-merged.json', async () => {
    // Loaded when asked for: describing schemas is of no use to a gateway that only forwards.
    const { openApiDocument } = await import('../../../http/openapi.ts');
    return mergedDescription(openApiDocument('gateway', version, http.kit.endpoints));
  });
  serveDocs(http, '/docs-all', '/openapi-merged.json');
  // A person who types the address gets a page. An upstream with the prefix "/" keeps its own root.
  if (!upstreamFor(upstreams, '/')) http.get('/', (_request, reply) => reply.redirect('/docs-all', 302));
}
