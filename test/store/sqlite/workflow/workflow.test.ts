import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { sqliteWorkflowStore } from '../../../../src/store/sqlite/index.ts';
import type { OpenDriver } from '../../suites/driver.ts';
import { describeEndTasks } from '../../suites/end-tasks.ts';
import { describePauses } from '../../suites/pauses.ts';
import { describeRunSearch } from '../../suites/run-search.ts';
import { describeSecretApprovals } from '../../suites/secret-approvals.ts';
import { describeWorkflow } from '../../suites/workflow.ts';

const open: OpenDriver<Awaited<ReturnType<typeof sqliteWorkflowStore>>> = async ({ dataDir }) => {
  const store = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
  return { port: store, close: () => store.close() };
};
describeWorkflow('sqlite', open);
describeRunSearch('sqlite', open);
describeEndTasks('sqlite', open);
describePauses('sqlite', open);
describeSecretApprovals('sqlite', async (options) => {
  const { port, close } = await open(options);
  return { port: port.approvals, close };
});
