import type { z } from 'zod';
import { type Endpoint, ErrorBody, PLATFORM_CODES, type PlatformCode } from '../contracts/index.ts';
import { createSchemaComponents, type SchemaComponents } from './json-schema.ts';
import { type DescribedEvent, describeEvents } from './openapi-webhooks.ts';

export type { SchemaComponents } from './json-schema.ts';

/** A mounted endpoint, or a route that has only a method and a path. */
export interface MountedEndpoint {
  method: string;
  path: string;
  endpoint?: Endpoint;
  authenticated: boolean;
}

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: { title: string; version: string; description?: string };
  tags?: Array<{ name: string; description?: string }>;
  paths: Record<string, Record<string, unknown>>;
  /** Messages that the service sends, by event type. */
  webhooks?: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> };
}

const ERROR_REF = { $ref: '#/components/schemas/Error' };

/** Converts a path such as `/a/:id` to the OpenAPI form `/a/{id}`. */
function openApiPath(path: string): string {
  return path.replace(/:([A-Za-z_]\w*)/g, '{$1}');
}

/** Returns the unique id of a route, such as `getAByIdLogs` for `GET /a/:id/logs`. */
export function operationId(method: string, path: string): string {
  const words = path.replace(/:/g, 'by-').split(/[^A-Za-z0-9]+/);
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

export function pathParameterNames(path: string): string[] {
  return [...path.matchAll(/:([A-Za-z_]\w*)/g)].map(([, name]) => name!);
}

/** Returns the OpenAPI description of an error response. All error responses have the same body schema. */
export function errorResponse(description: string): Record<string, unknown> {
  return { description, content: { 'application/json': { schema: ERROR_REF } } };
}

/** Builds an OpenAPI description with the common error schema and authentication scheme. `fill` adds the operations. */
export function describeApi(
  info: OpenApiDocument['info'],
  fill: (
    add: (method: string, path: string, operation: Record<string, unknown>) => void,
    components: SchemaComponents,
  ) => void,
  events: readonly DescribedEvent[] = [],
): OpenApiDocument {
  const components = createSchemaComponents();
  const paths: OpenApiDocument['paths'] = {};
  const tags = new Set<string>();
  components.add(ErrorBody, 'output');
  fill((method, path, operation) => {
    const key = openApiPath(path);
    paths[key] = { ...paths[key], [method.toLowerCase()]: operation };
    for (const tag of (operation.tags as string[] | undefined) ?? []) tags.add(tag);
  }, components);
  const webhooks = describeEvents(events, components);
  if (events.length > 0) tags.add('events');
  return {
    openapi: '3.1.0',
    info,
    tags: [...tags].sort().map((name) => ({ name })),
    paths,
    ...(events.length > 0 ? { webhooks } : {}),
    components: {
      schemas: Object.fromEntries(Object.entries(components.schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    },
  };
}

/**
 * Describes the visible mounted endpoints. The description is generated per request. Registering a generator at startup
 * would cost each service 100 ms and 8 MB. @spec Health, metrics, specification (visibility)
 */
export function openApiDocument(
  service: string,
  version: string,
  mounted: readonly MountedEndpoint[],
  events: readonly DescribedEvent[] = [],
): OpenApiDocument {
  return describeApi(
    { title: `svc ${service}`, version },
    (add, components) => {
      for (const { endpoint, path, authenticated } of mounted) {
        if (!isVisible(endpoint)) continue;
        add(endpoint.method, path, operationOf(endpoint, path, authenticated, components));
      }
    },
    events,
  );
}

/**
 * Returns true if the OpenAPI description lists the endpoint. A listed endpoint has a tag and is not hidden. @spec
 * Health, metrics, specification
 */
export function isVisible(endpoint: Endpoint | undefined): endpoint is Endpoint {
  return endpoint !== undefined && (endpoint.tags?.length ?? 0) > 0 && endpoint.hidden !== true;
}

function operationOf(
  endpoint: Endpoint,
  path: string,
  authenticated: boolean,
  components: SchemaComponents,
): Record<string, unknown> {
  const { method, summary, tags, params, query, headers, body } = endpoint;
  return {
    ...(summary ? { summary } : {}),
    operationId: operationId(method, path),
    tags,
    parameters: [
      ...pathParameters(path, params, components),
      ...parametersOf(query, 'query', components),
      ...parametersOf(headers, 'header', components),
    ],
    ...(body
      ? {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: components.add(body, 'input') } },
          },
        }
      : {}),
    responses: responsesOf(endpoint, authenticated, components),
    security: authenticated ? [{ bearer: [] }] : [],
  };
}

/** Returns all path parameters, including those without a schema, because OpenAPI requires their declaration. */
function pathParameters(
  path: string,
  schema: z.ZodType | undefined,
  components: SchemaComponents,
): Array<Record<string, unknown>> {
  const declared = parametersOf(schema, 'path', components);
  const undeclared = pathParameterNames(path).filter((name) => !declared.some((item) => item.name === name));
  return [
    ...declared,
    ...undeclared.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
  ];
}

function parametersOf(
  schema: z.ZodType | undefined,
  place: ParameterPlace,
  components: SchemaComponents,
): Array<Record<string, unknown>> {
  return schema ? parametersFrom(components.add(schema, 'input'), place) : [];
}

type ParameterPlace = 'path' | 'query' | 'header';

/** Converts each property of an object schema to an OpenAPI parameter. */
export function parametersFrom(
  schema: Record<string, unknown>,
  place: ParameterPlace,
): Array<Record<string, unknown>> {
  const { properties = {}, required = [] } = schema as {
    properties?: Record<string, Record<string, unknown>>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(description ? { description } : {}),
    schema: property,
  }));
}

function responsesOf(
  endpoint: Endpoint,
  authenticated: boolean,
  components: SchemaComponents,
): Record<string, unknown> {
  const success = (description: string, reply: z.ZodType) => ({
    description,
    content: { 'application/json': { schema: components.add(reply, 'output') } },
  });
  const responses: Record<string, unknown> = {
    [endpoint.status ?? 200]: success('Success', endpoint.reply),
    ...(endpoint.accepted ? { 202: success('Accepted for later processing', endpoint.accepted) } : {}),
  };
  const codes = new Set<PlatformCode>(endpoint.errors);
  if (authenticated) codes.add('UNAUTHORIZED');
  if (endpoint.params ?? endpoint.query ?? endpoint.body) codes.add('VALIDATION_ERROR');
  for (const [status, some] of Map.groupBy(codes, (code) => PLATFORM_CODES[code])) {
    responses[status] = errorResponse(some.join(', '));
  }
  responses.default = errorResponse('Any other failure');
  return responses;
}
