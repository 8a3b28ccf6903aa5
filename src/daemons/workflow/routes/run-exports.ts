import { exportRun, exportRunSpans } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { WorkflowServices } from '../services.ts';

/** Routes that export single runs. @spec docs/workflows.md "Timeline and export" */
export function runExportRoutes(http: Http, { runExports }: Pick<WorkflowServices, 'runExports'>): void {
  mount(http, exportRun, { auth: 'caller' }, ({ params, caller }) =>
    runExports.json(caller.namespaceId, params.runId),
  );
  mount(http, exportRunSpans, { auth: 'caller' }, ({ params, caller }) =>
    runExports.otlp(caller.namespaceId, params.runId),
  );
}
