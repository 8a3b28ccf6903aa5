import { useLayoutEffect, useRef } from 'preact/hooks';
import type { BulkJob } from './bulk-job.ts';
import type { Bulk, BulkState } from './use-bulk.ts';

interface BulkBarProps {
  bulk: Bulk;
  /** `deliveries` */
  noun: string;
  /** Number of chosen rows. Undefined for a list whose rows cannot be chosen. */
  chosen?: number;
  onClear?: () => void;
  /** Actions on the chosen rows, and on all that match the filters. */
  actions: ReadonlyArray<{ label: string; chosen?: BulkJob; all: BulkJob | undefined }>;
}

/** Buttons of the bulk actions of a list, the question before an action, and its progress. */
export function BulkBar(props: BulkBarProps) {
  const { bulk, noun } = props;
  const { state } = bulk;
  return (
    <section class="bulk" aria-label={`Actions on many ${noun}`}>
      {state.phase === 'idle' && <Choice {...props} />}
      {state.phase === 'counting' && <p role="status">Counting {noun}…</p>}
      {state.phase === 'asking' && <Question state={state} bulk={bulk} noun={noun} />}
      {(state.phase === 'working' || state.phase === 'stopped') && (
        <Progress state={state} bulk={bulk} noun={noun} />
      )}
      <p class={isFailed(state) ? 'notice error' : 'notice'} role="status">
        {state.phase === 'idle' && state.message}
      </p>
    </section>
  );
}

const isFailed = (state: BulkState): boolean => state.phase === 'idle' && state.isFailed;

function Choice({ bulk, noun, chosen, onClear, actions }: BulkBarProps) {
  return (
    <div class="actions">
      {chosen !== undefined && (
        <>
          <span>
            {chosen} {noun} chosen
          </span>
          {actions.map(({ label, chosen: job }) => (
            <button key={label} type="button" disabled={chosen === 0} onClick={() => job && bulk.ask(job)}>
              {label} chosen
            </button>
          ))}
          <button type="button" disabled={chosen === 0} onClick={onClear}>
            Clear
          </button>
        </>
      )}
      {actions.map(({ label, all }) => (
        <button key={label} type="button" disabled={!all} onClick={() => all && bulk.ask(all)}>
          {chosen === undefined ? `${label}…` : `${label} all that match…`}
        </button>
      ))}
    </div>
  );
}

interface PartProps<Phase extends BulkState['phase']> {
  state: Extract<BulkState, { phase: Phase }>;
  bulk: Bulk;
  noun: string;
}

function Question({ state: { progress, sample }, bulk, noun }: PartProps<'asking'>) {
  const confirm = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => confirm.current?.focus(), []);
  const { job, total, isTotalKnown } = progress;
  const count = isTotalKnown ? String(total) : `at least ${total}`;
  return (
    <div class="question">
      <p>
        {job.label} <strong>{count}</strong> {noun}? Later {noun} are not included.
      </p>
      <Selection job={job} />
      <p class="sample">
        {sample.map((id) => (
          <code key={id}>{id}</code>
        ))}
        {total > sample.length && '…'}
      </p>
      <div class="actions">
        <button ref={confirm} type="button" class="primary" onClick={bulk.confirm}>
          {job.label} {count}
        </button>
        <button type="button" onClick={bulk.forget}>
          Keep as is
        </button>
      </div>
    </div>
  );
}

/** The filters in the page can differ from those of an interrupted action, so the action names its own. */
function Selection({ job }: { job: BulkJob }) {
  return <p class="selection">Selection: {job.selection}</p>;
}

function Progress({ state: { phase, progress, reason }, bulk, noun }: PartProps<'working' | 'stopped'>) {
  const { job, total, done, skipped, refused } = progress;
  const handled = Math.min(total, done + skipped + refused.length);
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => button.current?.focus(), [phase]);
  return (
    <div class="question">
      <progress value={handled} max={total} aria-label={`${job.label}: progress`} />
      <p role="status">
        {job.label}: {done} of {total} {noun} done. {reason}
      </p>
      <Selection job={job} />
      <div class="actions">
        {phase === 'working' ? (
          <button ref={button} type="button" onClick={bulk.stop}>
            Stop
          </button>
        ) : (
          <>
            <button ref={button} type="button" class="primary" onClick={bulk.confirm}>
              Continue
            </button>
            <button type="button" onClick={bulk.forget}>
              Leave the rest
            </button>
          </>
        )}
      </div>
    </div>
  );
}
