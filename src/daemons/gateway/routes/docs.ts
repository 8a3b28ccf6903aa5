import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deliverToInstance, deliverWebhook } from '../../../contracts/index.ts';
import { type Http, serveDocs } from '../../../http/index.ts';
import { packageRoot, version } from '../../../kit/files/paths.ts';
import type { EventTypes } from '../domain/event-types/event-types.ts';
import type { MergedDescription } from '../domain/merged-description.ts';
import { type Upstream, upstreamFor } from '../proxy/upstreams.ts';

export interface DocsServices {
  mergedDescription: MergedDescription;
  upstreams: readonly Upstream[];
  eventTypes: Pick<EventTypes, 'list'>;
}

/** Routes of the API documentation. @spec Health, metrics, specification: /openapi-merged.json, /docs-all */
export function docsRoutes(http: Http, { mergedDescription, upstreams, eventTypes }: DocsServices): void {
  // The delivery endpoints are not mounted in Fastify, so they are added to the API description here.
  for (const endpoint of [deliverWebhook, deliverToInstance]) {
    const { method, path } = endpoint;
    http.kit.endpoints.push({ method, path, endpoint, authenticated: false });
  }
  http.kit.describeEvents = () => eventTypes.list();
  http.get('/openapi-merged.json', async () => {
    // The module is loaded on first use, because few gateways serve API descriptions.
    const { openApiDocument } = await import('../../../http/openapi.ts');
    const { endpoints } = http.kit;
    return mergedDescription(openApiDocument('gateway', version, endpoints, await eventTypes.list()));
  });
  serveDocs(http, '/docs-all', '/openapi-merged.json');
  for (const name of ['llms.txt', 'llms-full.txt']) {
    http.get(`/${name}`, async (_request, reply) => {
      reply.type('text/plain; charset=utf-8').header('cache-control', 'public, max-age=3600');
      return reply.send(await readFile(join(packageRoot, name)));
    });
  }
  // Redirects browsers to the documentation, unless an upstream with the prefix "/" serves this path.
  if (!upstreamFor(upstreams, '/')) http.get('/', (_request, reply) => reply.redirect('/docs-all', 302));
}
