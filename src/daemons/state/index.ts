import { defineDaemon } from '../define-daemon.ts';
import { entryRoutes } from './routes/entries.ts';
import { objectRoutes } from './routes/objects.ts';
import { vectorRoutes } from './routes/vectors.ts';
import { stateServices } from './services.ts';

/** Shared state that plugins keep between calls. @spec What the service does: state daemon */
export const state = defineDaemon({
  name: 'state',
  defaultPort: 7777,
  services: stateServices,
  routes: [entryRoutes, objectRoutes, vectorRoutes],
});
