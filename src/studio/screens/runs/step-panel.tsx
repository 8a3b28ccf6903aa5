import { useLayoutEffect, useRef } from 'preact/hooks';
import type { RunStep, WorkflowRun } from '../../../contracts/workflow-records.ts';
import { Command } from '../../ui/command.tsx';
import { Json } from '../../ui/json.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { useStepLog } from './step-log.ts';
import { whyStepWaits } from './why.ts';

interface StepPanelProps {
  run: WorkflowRun;
  steps: readonly RunStep[];
  step: RunStep;
  onSelect: (stepId: string) => void;
  onRerun: (stepId: string) => void;
}

/** Distance from the end of the log below which it follows new lines. */
const END_PX = 20;

/** The selected step: its attempts, its output and its log. */
export function StepPanel({ run, steps, step, onSelect, onRerun }: StepPanelProps) {
  const index = steps.indexOf(step);
  const why = whyStepWaits(step);
  const move = (to: number) => {
    const other = steps[to];
    return (
      <button type="button" disabled={!other} onClick={() => other && onSelect(other.id)}>
        {to < index ? 'Previous' : 'Next'}
      </button>
    );
  };
  return (
    <Section
      title={`Step ${step.id}`}
      actions={
        <>
          {run.finishedAt !== null && (
            <button type="button" onClick={() => onRerun(step.id)}>
              Rerun from here
            </button>
          )}
          {move(index - 1)}
          {move(index + 1)}
        </>
      }
    >
      <div class="split">
        <div>
          {why && <p class="advice">{why}</p>}
          <Attempts step={step} />
          {step.error && (
            <p class="error">
              <code>{step.error.code}</code> {step.error.message}
            </p>
          )}
          {step.output !== null && <Json value={step.output} label={`Output of ${step.id}`} />}
        </div>
        <StepLog key={step.id} run={run} stepId={step.id} />
      </div>
    </Section>
  );
}

function Attempts({ step }: { step: RunStep }) {
  if (step.history.length === 0) return <p>No attempt has ended.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th>Attempt</th>
          <th>Status</th>
          <th>Queued</th>
          <th>Worked</th>
          <th>Error</th>
        </tr>
      </thead>
      <tbody>
        {step.history.map(({ attempt, status, queuedAt, startedAt, finishedAt, error }) => (
          <tr key={attempt}>
            <td class="number">{attempt}</td>
            <td>{status}</td>
            <td class="number">
              <Duration ms={queuedAt === null ? null : (startedAt ?? finishedAt) - queuedAt} />
            </td>
            <td class="number">
              <Duration ms={startedAt === null ? null : finishedAt - startedAt} />
            </td>
            <td>{error?.message ?? ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function StepLog({ run, stepId }: { run: WorkflowRun; stepId: string }) {
  const { lines, hasEarlier, isLoading, error, loadEarlier, reload } = useStepLog(run, stepId);
  const box = useRef<HTMLOListElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  if (error) return <Failure error={error} onRetry={reload} />;
  if (lines.length === 0 && isLoading) return <Loading what="the log" />;
  if (lines.length === 0 && !hasEarlier) return <p class="log">The step has logged nothing.</p>;
  return (
    <div>
      {lines.length === 0 && <p>The newest lines of the run are of other steps.</p>}
      {hasEarlier && (
        <button type="button" disabled={isLoading} onClick={loadEarlier}>
          Load earlier lines
        </button>
      )}
      {lines.length > 0 && (
        <ol
          ref={box}
          class="log"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolling region must be reachable by keyboard.
          tabIndex={0}
          aria-label={`Log of ${stepId}`}
          onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
            isAtEnd.current = scrollTop + clientHeight > scrollHeight - END_PX;
          }}
        >
          {lines.map(({ id, time, level, message }) => (
            <li key={id} class={level}>
              <Time ms={time} /> {message}
            </li>
          ))}
        </ol>
      )}
      {hasEarlier && <Command text={`svc workflows logs ${run.id} --step ${stepId}`} />}
    </div>
  );
}
