import { defineDaemon } from '../define-daemon.ts';
import { runRoutes } from './routes/runs.ts';
import { workflowServices } from './services.ts';

/** Runs workflows and jobs. @spec What the service does: workflow daemon */
export const workflow = defineDaemon({
  name: 'workflow',
  defaultPort: 7778,
  services: workflowServices,
  routes: [runRoutes],
});
