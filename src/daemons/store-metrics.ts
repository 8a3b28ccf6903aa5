import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Gauge } from 'prom-client';
import type { ServiceName } from '../contracts/index.ts';
import type { Metrics } from '../kit/telemetry/metrics.ts';

const FILES: Partial<Record<ServiceName, readonly string[]>> = {
  gateway: ['svc.db'],
  workflow: ['workflow.db'],
  state: ['state.db', 'vectors.db', 'vectors-index.db'],
  rest: ['telemetry.db'],
};

/** Reports the size of the service's databases on disk, read at each scrape. Missing files count as 0. */
export function createStoreMetrics({ registry, service }: Metrics, dataDir: string): void {
  const files = FILES[service as ServiceName];
  if (!files) return;
  new Gauge({
    name: 'svc_store_bytes',
    help: 'Size on disk of a database, and of its write-ahead log',
    labelNames: ['service', 'file'],
    // Processes that share a file report the same value, so the values must not be added up.
    aggregator: 'max',
    registers: [registry],
    collect() {
      for (const name of files.flatMap((file) => [file, `${file}-wal`])) {
        this.set(
          { service, file: name },
          statSync(join(dataDir, name), { throwIfNoEntry: false })?.size ?? 0,
        );
      }
    },
  });
}
