import type { PlatformConfig } from '../../../contracts/index.ts';
import { isObject } from '../../../kit/config/merge.ts';
import { redact } from '../../../kit/redact.ts';

const MASK = '[redacted]';

/** The configuration as it may be shown or sent: static tokens, passwords in addresses and plugins' own secrets are masked. */
export function maskConfig(config: PlatformConfig): PlatformConfig {
  const { gateway, pluginConfig, adapters } = config;
  const { rest, workflow } = gateway.upstreams;
  return {
    ...config,
    gateway: {
      ...gateway,
      staticTokens: maskTokens(gateway.staticTokens),
      upstreams: {
        rest: { ...rest, url: maskUrl(rest.url) },
        workflow: { ...workflow, url: maskUrl(workflow.url) },
      },
    },
    pluginConfig: redact(pluginConfig) as PlatformConfig['pluginConfig'],
    // They name the variables that hold their secrets; an address may yet have a password in it.
    adapters: maskUrls(adapters) as PlatformConfig['adapters'],
  };
}

/** A static token is its key. Numbered, so that two of them stay two. */
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

/** User, password and query of an address can each be a secret. */
function maskUrl<Url extends string | null>(url: Url): Url {
  if (url === null) return url;
  const masked = url
    .replace(/^([a-z][a-z\d+.-]*:\/\/)[^/@]*@/i, `$1${MASK}@`)
    .replace(/(?<=:\/\/[^?]*)\?.*$/s, `?${MASK}`);
  return masked as Url;
}
