import { vi } from 'vitest';

// Every gateway hashes its operator's secret at its first start, which took a quarter of the processor time of that start.
// Loaded by vitest.config.ts.
vi.mock('../../src/daemons/gateway/domain/identity/secret-cost.ts', () => ({
  SECRET_COST: { N: 2, r: 8, p: 1 },
}));
