import { isDeepStrictEqual } from 'node:util';
import type { OpenApiDocument } from '../../../http/index.ts';

/** OpenAPI description of a service, with a filter for the paths that are reachable through the gateway. */
export interface DescribedService {
  name: string;
  document: OpenApiDocument;
  /** Returns whether the gateway routes a path. `path` uses OpenAPI notation, as in `/api/v1/jobs/{jobId}`. */
  isRouted(path: string): boolean;
  /**
   * Scope of the token requirement. With `always`, all operations require a token. With `as said`, each operation
   * declares whether it requires a token.
   */
  tokens: 'always' | 'as said';
}

type Components = Record<string, Record<string, unknown>>;

/**
 * Merges the descriptions of all services behind the gateway. If two services have the same path, the earlier service
 * takes precedence. Different components with the same name are renamed to `<service>_<name>`. @spec Health, metrics,
 * specification: /openapi-merged.json
 */
export function mergeOpenApi(
  info: OpenApiDocument['info'],
  services: readonly DescribedService[],
  unavailable: readonly string[],
): OpenApiDocument & { 'x-svc-unavailable'?: readonly string[] } {
  const components: Components = {};
  const paths: OpenApiDocument['paths'] = {};
  /**
   * Maps each path without its parameter names to the first spelling of the path. Paths that differ only in parameter
   * names count as the same path.
   */
  const spellings = new Map<string, string>();
  const takenIds = new Set<string>();
  const tags = new Map<string, { name: string; description?: string }>();
  const webhooks: OpenApiDocument['webhooks'] = {};
  for (const service of services) {
    const document = withOwnNames(service, components);
    for (const [path, operations] of Object.entries(document.paths)) {
      const shape = path.replace(/\{[^}]*\}/g, '{}');
      if (!service.isRouted(path) || (spellings.get(shape) ?? path) !== path) continue;
      spellings.set(shape, path);
      const described = operationsOf(operations, service, takenIds, (tag) => {
        if (!tags.has(tag)) tags.set(tag, { name: tag });
      });
      paths[path] = { ...described, ...paths[path] };
    }
    for (const [type, operations] of Object.entries(document.webhooks ?? {}))
      webhooks[type] = operationsOf(operations, service, takenIds, (tag) => tags.set(tag, { name: tag }));
    for (const tag of document.tags ?? [])
      if (tag.description !== undefined && tags.has(tag.name)) tags.set(tag.name, tag);
  }
  return {
    openapi: '3.1.0',
    info,
    tags: [...tags.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    ...(Object.keys(webhooks).length > 0 ? { webhooks } : {}),
    components: { schemas: {}, securitySchemes: {}, ...components },
    ...(unavailable.length > 0 ? { 'x-svc-unavailable': unavailable } : {}),
  };
}

/**
 * Adds the document's components to `all`. A component is renamed if `all` contains a different component with the same
 * name.
 */
function withOwnNames({ name, document }: DescribedService, all: Components): OpenApiDocument {
  const renamed = new Map<string, string>();
  const own = (document.components ?? {}) as unknown as Components;
  for (const [section, entries] of Object.entries(own)) {
    for (const [key, value] of Object.entries(entries)) {
      const taken = all[section]?.[key];
      if (taken !== undefined && !isDeepStrictEqual(taken, value)) {
        renamed.set(`#/components/${section}/${key}`, `#/components/${section}/${name}_${key}`);
      }
    }
  }
  const rewritten = rewriteRefs(document, renamed) as OpenApiDocument;
  for (const [section, entries] of Object.entries((rewritten.components ?? {}) as unknown as Components)) {
    for (const [key, value] of Object.entries(entries)) {
      const target = renamed.has(`#/components/${section}/${key}`) ? `${name}_${key}` : key;
      all[section] = { ...all[section], [target]: value };
    }
  }
  return rewritten;
}

function rewriteRefs(value: unknown, renamed: ReadonlyMap<string, string>): unknown {
  if (renamed.size === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => rewriteRefs(item, renamed));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      key === '$ref' && typeof item === 'string' ? (renamed.get(item) ?? item) : rewriteRefs(item, renamed),
    ]),
  );
}

function operationsOf(
  operations: Record<string, unknown>,
  { name, tokens }: DescribedService,
  takenIds: Set<string>,
  onTag: (tag: string) => void,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(operations).map(([method, operation]) => {
      const { operationId, tags = [], ...rest } = operation as { operationId?: string; tags?: string[] };
      for (const tag of tags) onTag(tag);
      const id =
        operationId !== undefined && takenIds.has(operationId) ? `${name}_${operationId}` : operationId;
      if (id !== undefined) takenIds.add(id);
      const security = tokens === 'always' ? { security: [{ bearer: [] }] } : {};
      return [method, { ...(id === undefined ? {} : { operationId: id }), tags, ...rest, ...security }];
    }),
  );
}
