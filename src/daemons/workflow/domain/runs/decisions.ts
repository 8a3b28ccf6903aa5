import type { RunError } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { JsonValue, RunRecord, RunStore } from '../../../../store/ports/index.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { Engine } from '../engine/ports.ts';
import { partsOf, stepIdOf, stepsOf } from '../run/parts.ts';
import { seqOf } from './pages.ts';
import { requireOutputSize } from './signal-check.ts';

/** Filter for runs that wait for an operator's decision. */
export interface DecisionFilter {
  workflowId?: string | undefined;
  stepId?: string | undefined;
  cursor?: string | undefined;
  limit: number;
}

export interface StepOfRun {
  runId: string;
  stepId: string;
}

export interface Decided {
  decided: StepOfRun[];
  refused: Array<StepOfRun & { error: RunError }>;
  nextCursor: string | null;
}

export interface DecisionsDeps {
  store: Pick<RunStore, 'list' | 'load'>;
  definitions: Pick<Definitions, 'byHash'>;
  engine: Pick<Engine, 'deliver'>;
  clock: Clock;
}

/**
 * Applies decisions about the interrupted steps of many runs, one page at a time. @spec
 * docs/workflows.md "After a crash"
 */
export class Decisions {
  readonly #deps: DecisionsDeps;

  constructor(deps: DecisionsDeps) {
    this.#deps = deps;
  }

  /**
   * Applies a decision to the matching steps of one page of waiting runs. Throws PAYLOAD_TOO_LARGE if `decision.output`
   * is too large for a step output.
   */
  async decide(
    tenantId: string,
    { cursor, limit, workflowId, stepId }: DecisionFilter,
    decision: Record<string, JsonValue>,
  ): Promise<Decided> {
    requireOutputSize('The output', decision.output ?? null);
    const { runs, next } = await this.#deps.store.list(tenantId, {
      ...{ waitingReason: 'decision', workflowId, limit },
      before: seqOf(cursor),
    });
    const decided: StepOfRun[] = [];
    const refused: Decided['refused'] = [];
    for (const run of runs) {
      try {
        for (const waiting of await this.#waitingSteps(run)) {
          if (stepId !== undefined && waiting !== stepId) continue;
          const told = await this.#deliver(run, waiting, decision);
          const step = { runId: run.id, stepId: waiting };
          if (told) refused.push({ ...step, error: told });
          else decided.push(step);
        }
      } catch (error) {
        refused.push({ runId: run.id, stepId: '', error: refusalOf(error) });
      }
    }
    return { decided, refused, nextCursor: next === null ? null : String(next) };
  }

  async #waitingSteps({ seq, definitionHash }: RunRecord): Promise<string[]> {
    const { store, definitions } = this.#deps;
    const [loaded, workflow] = await Promise.all([store.load(seq), definitions.byHash(definitionHash)]);
    if (!loaded) return [];
    return stepsOf(partsOf(workflow, loaded))
      .filter(({ record, wait }) => record.status === 'waiting' && wait?.for === 'decision')
      .map(stepIdOf);
  }

  /** Delivers a decision to one run. Returns the error if the decision was rejected. */
  async #deliver(
    run: RunRecord,
    stepId: string,
    decision: Record<string, JsonValue>,
  ): Promise<RunError | undefined> {
    const { engine, clock } = this.#deps;
    const entry = {
      kind: 'decision',
      name: stepId,
      payload: JSON.stringify(decision),
      at: clock.now(),
    } as const;
    try {
      await engine.deliver(run, entry, { once: true });
      return undefined;
    } catch (error) {
      return refusalOf(error);
    }
  }
}

/** Converts a `PlatformError` to the reason for a rejection. Rethrows other errors. */
function refusalOf(error: unknown): RunError {
  if (!(error instanceof PlatformError)) throw error;
  const { code, message, details } = error;
  return { code, message, details };
}
