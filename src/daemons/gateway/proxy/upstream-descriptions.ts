import { type OpenApiDocument, serviceHeaders } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { DescriptionSource } from '../domain/merged-description.ts';
import { type Upstream, upstreamFor } from './upstreams.ts';

const TIMEOUT_MS = 3000;

/**
 * Returns the sources of the merged API description. Each upstream is a source, and the HTTP routes of plugins are one
 * source.
 */
export function upstreamDescriptions(
  upstreams: readonly Upstream[],
  internalSecret: string,
  publicPluginRoutes: boolean,
): DescriptionSource[] {
  return upstreams.flatMap((upstream) => {
    const isRouted = (path: string): boolean => upstreamFor(upstreams, path)?.upstream === upstream;
    const from = (path: string) => () => fetchDescription(upstream, path, internalSecret);
    const own = { name: upstream.name, isRouted, fetch: from('/openapi.json'), tokens: 'always' as const };
    if (upstream.name !== 'rest') return [own];
    const fetch = from('/openapi-plugins.json');
    return [own, { name: 'plugins', isRouted, fetch, tokens: publicPluginRoutes ? 'as said' : 'always' }];
  });
}

async function fetchDescription(
  upstream: Upstream,
  path: string,
  internalSecret: string,
): Promise<OpenApiDocument> {
  const response = await fetch(upstream.origin() + upstream.basePath + path, {
    headers: serviceHeaders(internalSecret),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const document = response.ok ? ((await response.json()) as Partial<OpenApiDocument>) : {};
  if (typeof document.paths !== 'object' || document.paths === null) {
    throw new PlatformError(
      'UPSTREAM_UNAVAILABLE',
      `The ${upstream.name} service has no ${path} (${response.status}).`,
    );
  }
  return document as OpenApiDocument;
}
