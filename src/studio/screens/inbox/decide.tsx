import { useState } from 'preact/hooks';
import type { RunStep, WorkflowRun } from '../../../contracts/workflow-records.ts';
import { call } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { parsedJson } from '../../ui/json.tsx';
import { Notice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/use-action.ts';

interface DecideProps {
  run: WorkflowRun;
  step: RunStep;
}

/** Buttons that end the wait of a step. */
export function Decide({ run, step }: DecideProps) {
  const action = useAction();
  const decide = (change: () => Promise<unknown>, done: string) => (): void =>
    action.run(async () => {
      await change();
      outdate('listRuns', 'listRunSteps', 'getRun');
      return done;
    });
  const kind = step.waitingFor?.for;
  return (
    <div class="decide">
      <p>
        <strong>{step.name || step.id}</strong>: {step.waitingFor?.message ?? defaultText(step)}
      </p>
      {kind === 'approval' && <Approval run={run} step={step} decide={decide} />}
      {kind === 'signal' && <Signal run={run} step={step} decide={decide} />}
      {(kind === 'decision' || step.status === 'interrupted') && (
        <Interruption run={run} step={step} decide={decide} />
      )}
      <Notice action={action} />
    </div>
  );
}

interface PartProps extends DecideProps {
  decide: (change: () => Promise<unknown>, done: string) => () => void;
}

function Approval({ run, step, decide }: PartProps) {
  const [comment, setComment] = useState('');
  const params = { runId: run.id, stepId: step.id };
  const answer = (approved: boolean) => () =>
    call('decideApproval', { params, body: { approved, ...(comment ? { comment } : {}) } });
  const id = `comment-${run.id}-${step.id}`;
  return (
    <div class="actions">
      <label for={id}>Comment</label>
      <input id={id} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
      <button type="button" class="primary" onClick={decide(answer(true), 'Approved.')}>
        Approve
      </button>
      <button type="button" onClick={decide(answer(false), 'Refused.')}>
        Refuse
      </button>
    </div>
  );
}

function Signal({ run, step, decide }: PartProps) {
  const [text, setText] = useState('null');
  const name = step.waitingFor?.name ?? '';
  const payload = parsedJson(text);
  const send = () =>
    call('sendSignal', { params: { runId: run.id, name }, body: { payload: payload as never } });
  const id = `payload-${run.id}-${step.id}`;
  return (
    <div class="actions">
      <label for={id}>Payload of {name} as JSON</label>
      <input id={id} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button
        type="button"
        class="primary"
        disabled={payload === undefined}
        onClick={decide(send, 'The signal was sent.')}
      >
        Send
      </button>
    </div>
  );
}

const CHOICES = [
  { action: 'retry', label: 'Run again', done: 'The step runs again.' },
  { action: 'succeed', label: 'Count as done', done: 'The step counts as done.' },
  { action: 'fail', label: 'Count as failed', done: 'The step counts as failed.' },
] as const;

function Interruption({ run, step, decide }: PartProps) {
  const params = { runId: run.id, stepId: step.id };
  return (
    <div class="actions">
      {CHOICES.map(({ action, label, done }) => (
        <button
          key={action}
          type="button"
          onClick={decide(() => call('decideStep', { params, body: { action } }), done)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

function defaultText({ waitingFor }: RunStep): string {
  if (waitingFor?.for === 'signal') return `waits for the signal ${waitingFor.name}.`;
  if (waitingFor?.for === 'approval') return 'waits for an approval.';
  return 'was interrupted by a crash. Look whether its effect has happened, then decide.';
}
