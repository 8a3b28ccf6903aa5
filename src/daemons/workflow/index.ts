import { defineDaemon } from '../define-daemon.ts';
import { memberUrl } from '../membership/member-url.ts';
import { rereadRoutes } from '../plugin-runtime/reread.ts';
import { codeStepRoutes } from './routes/code-steps.ts';
import { factRoutes } from './routes/facts.ts';
import { jobRoutes } from './routes/jobs.ts';
import { noticeRoutes } from './routes/notices.ts';
import { pauseRoutes } from './routes/pauses.ts';
import { runExportRoutes } from './routes/run-exports.ts';
import { answerRoutes, runRoutes, streamRoutes } from './routes/runs.ts';
import { scheduleRoutes } from './routes/schedules.ts';
import { traceRoutes } from './routes/traces.ts';
import { triggerRoutes } from './routes/triggers.ts';
import { workflowServices } from './services.ts';

/** Daemon that runs workflows and jobs. @spec What the service does: workflow daemon */
export const workflow = defineDaemon({
  name: 'workflow',
  defaultPort: 7778,
  services: workflowServices,
  routes: [
    runRoutes,
    answerRoutes,
    streamRoutes,
    pauseRoutes,
    runExportRoutes,
    jobRoutes,
    scheduleRoutes,
    triggerRoutes,
    traceRoutes,
    codeStepRoutes,
    noticeRoutes,
    factRoutes,
    rereadRoutes,
  ],
  async ready({ engine, endHandlers, membership }, resources) {
    membership.announce(memberUrl('workflow', resources));
    await engine.start();
    endHandlers.start();
  },
  drain: ({ drain }) => drain(),
});
