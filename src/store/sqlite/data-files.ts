import type { Migrations } from './migrate.ts';
import { STATE_MIGRATIONS } from './state/schema.ts';
import { VECTOR_MIGRATIONS } from './state/vector-schema.ts';
import { GATEWAY_MIGRATIONS } from './svc/schema.ts';
import { TELEMETRY_MIGRATIONS } from './telemetry/schema.ts';
import { WORKFLOW_MIGRATIONS } from './workflow/schema.ts';

/** All databases of a data folder with their migrations. @spec docs/architecture.md "What is on disk" */
export const DATA_FILES: ReadonlyArray<{ name: string; migrations: Migrations }> = [
  { name: 'svc.db', migrations: GATEWAY_MIGRATIONS },
  { name: 'workflow.db', migrations: WORKFLOW_MIGRATIONS },
  { name: 'state.db', migrations: STATE_MIGRATIONS },
  { name: 'vectors.db', migrations: VECTOR_MIGRATIONS },
  { name: 'telemetry.db', migrations: TELEMETRY_MIGRATIONS },
];
