import type { PlatformConfig } from '../../../contracts/index.ts';
import { isObject } from '../../../kit/config/merge.ts';
import { redact } from '../../../kit/telemetry/redact.ts';

const MASK = '[redacted]';

/** Masks static tokens, passwords in URLs and secrets of plugins, for display and reports. */
export function maskConfig(config: PlatformConfig): PlatformConfig {
  const { gateway, pluginConfig, adapters } = config;
  const { rest, workflow } = gateway.upstreams;
  return {
    ...config,
    cache: { ...config.cache, url: maskUrl(config.cache.url) },
    store: { ...config.store, url: maskUrl(config.store.url) },
    gateway: {
      ...gateway,
      staticTokens: maskTokens(gateway.staticTokens),
      upstreams: {
        rest: { ...rest, url: maskUrl(rest.url) },
        workflow: { ...workflow, url: maskUrl(workflow.url) },
      },
    },
    pluginConfig: redact(pluginConfig) as PlatformConfig['pluginConfig'],
    // Adapters refer to secrets by environment variable, but the URLs of adapters can contain a password.
    adapters: maskUrls(adapters) as PlatformConfig['adapters'],
  };
}

/** Masks static tokens, which are the keys of the map. A number in each masked key keeps the keys distinct. */
function maskTokens(tokens: PlatformConfig['gateway']['staticTokens']): typeof tokens {
  return Object.fromEntries(
    Object.values(tokens).map((entry, index) => [`${MASK} ${index + 1}`, entry] as const),
  );
}

function maskUrls(value: unknown): unknown {
  if (typeof value === 'string') return maskUrl(value);
  if (Array.isArray(value)) return value.map(maskUrls);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, maskUrls(inner)]));
}

/** Masks the credentials and the query of a URL, because credentials and queries can contain secrets. */
function maskUrl<Url extends string | null>(url: Url): Url {
  if (url === null) return url;
  const masked = url
    .replace(/^([a-z][a-z\d+.-]*:\/\/)[^/@]*@/i, `$1${MASK}@`)
    .replace(/(?<=:\/\/[^?]*)\?.*$/s, `?${MASK}`);
  return masked as Url;
}
