import { z } from 'zod';
import { NoFilters } from './common.ts';
import { endpoint } from './endpoint.ts';

export const RouteItem = z
  .object({
    method: z.string(),
    path: z.string().describe('The pattern; ":name" stands for one segment'),
    tagged: z.boolean(),
    visible: z.boolean().describe('Whether the API description lists the route'),
    pluginId: z.string().nullable().describe('The plugin that contributes it; null: the platform'),
  })
  .meta({ id: 'RouteItem' });
export type RouteItem = z.infer<typeof RouteItem>;

/** Lists every route of the service, including routes without a description. @spec Health, metrics, specification */
export const listRoutes = endpoint({
  method: 'GET',
  path: '/api/v1/routes',
  summary: 'List all registered routes, unfiltered',
  tags: ['routes'],
  query: NoFilters,
  reply: z.object({ items: z.array(RouteItem) }),
});
