import type { CallVia, Role, RunLabels, RunStatus, WaitReason } from '../../../../contracts/index.ts';
import type { JsonValue, RunFilter } from '../../../../store/ports/index.ts';
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

/** Conditions that runs of a list or a bulk action must meet. */
export interface RunConditions {
  status?: readonly RunStatus[] | undefined;
  waitingReason?: WaitReason | undefined;
  paused?: true | undefined;
  workflowId?: string | undefined;
  label?: readonly string[] | undefined;
  from?: number | undefined;
  to?: number | undefined;
  search?: string | undefined;
}

export interface ListFilter extends PageRequest, RunConditions {}

export interface LogPage extends PageRequest {
  stepId?: string | undefined;
  /** `desc` is newest first. */
  order?: 'asc' | 'desc' | undefined;
}

export interface SignalSender {
  /** A repeated key delivers nothing. */
  key?: string | undefined;
  role?: Role | null | undefined;
  /** Host id of the caller. */
  by?: string | undefined;
  via?: CallVia | undefined;
}

/** Returns the filter of the store for workflow runs. */
export function storeFilter({ label, ...conditions }: RunConditions): Omit<RunFilter, 'limit'> {
  return { ...conditions, kind: 'workflow', labels: label };
}
