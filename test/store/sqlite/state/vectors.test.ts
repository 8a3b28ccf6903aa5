import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { sqliteStateStore } from '../../../../src/store/sqlite/index.ts';
import { describeVectors } from '../../suites/vectors.ts';

describeVectors('sqlite', async ({ dataDir, clock }) => {
  const store = await sqliteStateStore({ dataDir, clock, logger: silentLogger });
  return { port: store.vectors, close: () => store.close() };
});
