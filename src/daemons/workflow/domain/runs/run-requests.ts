import type { RunLabels, RunStatus, WaitReason } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { PageRequest } from './pages.ts';

export interface NewRunRequest {
  workflowId?: string | undefined;
  definition?: unknown;
  input: JsonValue;
  idempotencyKey?: string | undefined;
  priority: number;
  runAt?: number | undefined;
  labels?: RunLabels | undefined;
}

export interface ListFilter extends PageRequest {
  status?: RunStatus | undefined;
  waitingReason?: WaitReason | undefined;
  workflowId?: string | undefined;
  label?: readonly string[] | undefined;
  from?: number | undefined;
  to?: number | undefined;
  search?: string | undefined;
}
