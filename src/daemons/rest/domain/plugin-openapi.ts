import {
  describeApi,
  errorResponse,
  type OpenApiDocument,
  operationId,
  parametersFrom,
  pathParameterNames,
  type SchemaComponents,
} from '../../../http/openapi.ts';
import type { PluginRoute } from '../../plugin-routes/route-table.ts';
import type { PluginSchemas } from './plugin-schemas.ts';

interface DescribedRoute {
  route: PluginRoute;
  input: Record<string, unknown> | undefined;
  output: Record<string, unknown> | undefined;
}

/**
 * Builds the API description of plugin routes. Each route appears once, at its first path. `schemasOf` reads a plugin's
 * schema files. @spec Health, metrics, specification: /openapi-plugins.json
 */
export async function pluginOpenApi(
  routes: readonly PluginRoute[],
  version: string,
  schemasOf: (plugin: PluginRoute['plugin']) => PluginSchemas,
): Promise<OpenApiDocument> {
  const described = withinSizeLimit(
    await Promise.all(routes.map((route) => describe(route, schemasOf(route.plugin)))),
  );
  return describeApi({ title: 'svc plugins', version }, (add, components) => {
    for (const { route, input, output } of described) {
      const { method } = route.declaration;
      const path = route.paths[0]!;
      const prefix = componentPrefix(route.plugin.id);
      add(method, path, {
        ...headOf(route, path),
        ...inputOf(route, path, input && components.lift(prefixed(input, prefix), prefix), components),
        responses: responsesOf(route, output && components.lift(prefixed(output, prefix), prefix)),
        security: securityOf(route),
      });
    }
  });
}

async function describe(route: PluginRoute, schemas: PluginSchemas): Promise<DescribedRoute> {
  return { route, ...(await schemas.ofHandler(route.declaration)) };
}

/** Maximum size of a plugin's schemas. The description is public, so clients can request it at any time. */
const PLUGIN_CHARS = 4 * 1024 * 1024;

/** Sizes of schemas as JSON, cached by object, because each request gets the same schema objects. */
const sizes = new WeakMap<object, number>();

/** Omits a plugin's schemas that exceed its size limit. A schema counts once per route. */
function withinSizeLimit(described: DescribedRoute[]): DescribedRoute[] {
  const left = new Map<string, number>();
  return described.map(({ route, ...schemas }) => {
    const kept = (schema: Record<string, unknown> | undefined): Record<string, unknown> | undefined => {
      if (!schema) return undefined;
      const size = sizes.get(schema) ?? JSON.stringify(schema).length;
      sizes.set(schema, size);
      const room = (left.get(route.plugin.id) ?? PLUGIN_CHARS) - size;
      if (room < 0) return { description: 'Not shown: the schemas of this plugin are too large.' };
      left.set(route.plugin.id, room);
      return schema;
    };
    return { route, input: kept(schemas.input), output: kept(schemas.output) };
  });
}

function headOf({ plugin, declaration }: PluginRoute, path: string): Record<string, unknown> {
  return {
    ...(declaration.description ? { summary: declaration.description } : {}),
    operationId: operationId(declaration.method, path),
    tags: [`plugin:${plugin.id}`],
  };
}

/**
 * Describes the input of a route. The input is the query for GET and DELETE, and a JSON body for other methods. @spec
 * Plugin routes 1
 */
function inputOf(
  { declaration }: PluginRoute,
  path: string,
  input: Record<string, unknown> | undefined,
  components: SchemaComponents,
): Record<string, unknown> {
  const fromPath = pathParameterNames(path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  if (declaration.method === 'GET' || declaration.method === 'DELETE') {
    return { parameters: [...fromPath, ...parametersFrom(follow(input ?? {}, components), 'query')] };
  }
  return {
    parameters: fromPath,
    ...(input ? { requestBody: { required: true, content: { 'application/json': { schema: input } } } } : {}),
  };
}

/** Resolves a `$ref`, because OpenAPI needs each parameter as a separate schema. */
function follow(schema: Record<string, unknown>, { schemas }: SchemaComponents): Record<string, unknown> {
  const { $ref } = schema;
  return typeof $ref === 'string' ? (schemas[$ref.split('/').at(-1)!] ?? {}) : schema;
}

function responsesOf(
  { declaration }: PluginRoute,
  output: Record<string, unknown> | undefined,
): Record<string, unknown> {
  const responses: Record<string, unknown> = {
    200: {
      description: 'What the handler returned',
      content: { 'application/json': { schema: output ?? {} } },
    },
  };
  for (const [status, errors] of Map.groupBy(declaration.errors, ({ http }) => http)) {
    responses[status] = errorResponse(
      errors.map(({ code, description }) => (description ? `${code}: ${description}` : code)).join('; '),
    );
  }
  if (declaration.input) responses[400] ??= errorResponse('VALIDATION_ERROR');
  responses.default = errorResponse('Any other failure');
  return responses;
}

function securityOf({ security }: PluginRoute): unknown[] {
  if (!security) return [{ bearer: [] }];
  return security.every((way) => way === 'none')
    ? []
    : security.includes('none')
      ? [{}, { bearer: [] }]
      : [{ bearer: [] }];
}

/**
 * Returns the prefix of a plugin's component names, such as `acme.orders` for `@acme/orders`. Component names allow
 * only letters, digits and `. _ -`.
 */
function componentPrefix(pluginId: string): string {
  return pluginId.replace(/^@/, '').replace(/[^A-Za-z0-9._-]/g, '.');
}

/**
 * Prefixes the name of each definition with the plugin's name. Two plugins can have definitions of the same name, such
 * as `ListQuery`.
 */
function prefixed(schema: Record<string, unknown>, prefix: string): Record<string, unknown> {
  const { $defs = {}, ...root } = schema as { $defs?: Record<string, unknown> };
  const rename = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        key,
        key === '$ref' && typeof item === 'string'
          ? item.replace('#/$defs/', `#/$defs/${prefix}.`)
          : rename(item),
      ]),
    );
  };
  return {
    ...(rename(root) as Record<string, unknown>),
    $defs: Object.fromEntries(Object.entries($defs).map(([name, def]) => [`${prefix}.${name}`, rename(def)])),
  };
}
