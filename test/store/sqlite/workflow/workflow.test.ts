import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { sqliteWorkflowStore } from '../../../../src/store/sqlite/index.ts';
import { describeWorkflow } from '../../suites/workflow.ts';

describeWorkflow('sqlite', async ({ dataDir }) => {
  const store = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
  return { port: store, close: () => store.close() };
});
