import type {
  AttemptRecord,
  EventRecord,
  JobRecord,
  LogLineRecord,
  RunProgress,
  StepRecord,
} from '../../../../store/ports/index.ts';
import type { Effect } from './effects.ts';
import type { StepKey } from './state.ts';

/** A change to persist. The records are copies, because the state can change before the write. */
export type Write =
  | { type: 'run'; progress: RunProgress }
  | { type: 'job'; record: JobRecord }
  | { type: 'step'; key: StepKey; record: StepRecord }
  | { type: 'attempt'; record: AttemptRecord }
  | { type: 'event'; record: EventRecord }
  | { type: 'log'; record: LogLineRecord }
  /** Records that a step consumed an inbox entry. */
  | { type: 'taken'; n: number; by: string };

export interface Transition {
  writes: Write[];
  effects: Effect[];
  /** Owners of the slots that the transition took. */
  slots: Array<StepKey | 'replay'>;
  /** Evaluation budget that the transition spent, in cost units. */
  units: number;
}
