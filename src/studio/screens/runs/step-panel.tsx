import type { RunStep, WorkflowRun } from '../../../contracts/workflow-records.ts';
import { useQuery } from '../../api/query.ts';
import { Json } from '../../ui/json.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { whyStepWaits } from './why.ts';

interface StepPanelProps {
  run: WorkflowRun;
  steps: readonly RunStep[];
  step: RunStep;
  onSelect: (stepId: string) => void;
  onRerun: (stepId: string) => void;
}

const LOG_LINES = 500;

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
        <StepLog run={run} stepId={step.id} />
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
  const isActive = run.finishedAt === null;
  const { data, error, reload } = useQuery(
    'listRunLogs',
    { params: { runId: run.id }, query: { stepId, limit: LOG_LINES } },
    isActive ? { everyMs: 1000 } : {},
  );
  if (error) return <Failure error={error} onRetry={reload} />;
  if (!data) return <Loading what="the log" />;
  if (data.items.length === 0) return <p class="log">The step has logged nothing.</p>;
  return (
    <ol class="log" aria-label={`Log of ${stepId}`}>
      {data.items.map(({ id, time, level, message }) => (
        <li key={id} class={level}>
          <Time ms={time} /> {message}
        </li>
      ))}
    </ol>
  );
}
