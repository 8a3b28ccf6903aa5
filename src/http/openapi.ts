import { z } from 'zod';
import { type Endpoint, ErrorBody, PLATFORM_CODES } from '../contracts/index.ts';

/** What was mounted: an endpoint of ours as data, or a route known only by method and path. */
export interface MountedEndpoint {
  method: string;
  path: string;
  endpoint?: Endpoint;
  /** Whether a caller must be authenticated. */
  authenticated: boolean;
}

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: { title: string; version: string; description?: string };
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> };
}

/** `/a/:id` as OpenAPI writes it: `/a/{id}`. */
export function openApiPath(path: string): string {
  return path.replace(/:([A-Za-z_]\w*)/g, '{$1}');
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Record<
    string,
    unknown
  >;
  return rest;
}

function parametersOf(schema: z.ZodType | undefined, place: 'path' | 'query'): unknown[] {
  if (!schema) return [];
  const { properties = {}, required = [] } = jsonSchema(schema, 'input') as {
    properties?: Record<string, unknown>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: property,
  }));
}

function responsesOf(endpoint: Endpoint): Record<string, unknown> {
  const responses: Record<string, unknown> = {
    [endpoint.status ?? 200]: {
      description: 'Success',
      content: { 'application/json': { schema: jsonSchema(endpoint.reply, 'output') } },
    },
  };
  const byStatus = Map.groupBy(endpoint.errors ?? [], (code) => PLATFORM_CODES[code]);
  for (const [status, codes] of byStatus) {
    responses[status] = {
      description: codes.join(', '),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    };
  }
  return responses;
}

function operationOf({
  endpoint,
  authenticated,
}: MountedEndpoint & { endpoint: Endpoint }): Record<string, unknown> {
  return {
    ...(endpoint.summary ? { summary: endpoint.summary } : {}),
    operationId: `${endpoint.method.toLowerCase()}${endpoint.path.replace(/[^A-Za-z0-9]+(.)?/g, (_, next: string) => (next ?? '').toUpperCase())}`,
    tags: endpoint.tags,
    parameters: [...parametersOf(endpoint.params, 'path'), ...parametersOf(endpoint.query, 'query')],
    ...(endpoint.body
      ? {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: jsonSchema(endpoint.body, 'input') } },
          },
        }
      : {}),
    responses: responsesOf(endpoint),
    security: authenticated ? [{ bearer: [] }] : [],
  };
}

/**
 * The description of what is mounted: tagged endpoints that are not hidden.
 * Printed from the endpoints when asked; registering a generator at start costs each daemon 100 ms and 8 MB.
 * @spec Health, metrics, specification (visibility)
 */
export function openApiDocument(
  service: string,
  version: string,
  mounted: MountedEndpoint[],
): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {};
  for (const route of mounted) {
    const { endpoint } = route;
    if (!endpoint?.tags?.length || endpoint.hidden) continue;
    const path = openApiPath(route.path);
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operationOf({ ...route, endpoint }) };
  }
  return {
    openapi: '3.1.0',
    info: { title: `svc ${service}`, version },
    paths,
    components: {
      schemas: { Error: jsonSchema(ErrorBody, 'output') },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    },
  };
}
