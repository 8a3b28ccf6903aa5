import { useState } from 'preact/hooks';
import type { RunStep, WorkflowRun } from '../../../contracts/workflow-records.ts';
import { type ApiError, call } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { type FieldIssue, type FieldSchema, fieldsOf, issuesOf } from '../../ui/form-values.ts';
import { parsedJson } from '../../ui/json.tsx';
import { JsonField } from '../../ui/json-field/json-field.tsx';
import { Notice } from '../../ui/notice.tsx';
import { SchemaForm } from '../../ui/schema-form.tsx';
import { Time } from '../../ui/time.tsx';
import { useAction } from '../../ui/use-action.ts';

interface DecideProps {
  run: WorkflowRun;
  step: RunStep;
}

/** Buttons that end the wait of a step. */
export function Decide({ run, step }: DecideProps) {
  const action = useAction();
  const { isBusy } = action;
  const decide = (change: () => Promise<unknown>, done: string) => (): void => {
    // A form is also sent with Enter.
    if (isBusy) return;
    action.run(async () => {
      await change();
      outdate('listRuns', 'listRunSteps', 'getRun');
      return done;
    });
  };
  const kind = step.waitingFor?.for;
  return (
    <div class="decide">
      <p>
        <strong>{step.name || step.id}</strong>: {step.waitingFor?.message ?? defaultText(step)}
      </p>
      <Limits step={step} />
      {kind === 'approval' && <Approval run={run} step={step} decide={decide} isBusy={isBusy} />}
      {kind === 'signal' && <Signal run={run} step={step} decide={decide} isBusy={isBusy} />}
      {(kind === 'decision' || step.status === 'interrupted') && (
        <Interruption run={run} step={step} decide={decide} isBusy={isBusy} />
      )}
      <Notice action={action} />
    </div>
  );
}

/** Shows until when the step waits, and who may approve it. */
function Limits({ step: { wakeAt, waitingFor } }: { step: RunStep }) {
  const roles = waitingFor?.approvers?.roles;
  const isTimed = wakeAt !== null && (waitingFor?.for === 'approval' || waitingFor?.for === 'signal');
  if (!roles && !isTimed) return null;
  return (
    <p class="hint">
      {isTimed && (
        <>
          Expires <Time ms={wakeAt} />.{' '}
        </>
      )}
      {roles && `Needs the role ${roles.join(' or ')}.`}
    </p>
  );
}

interface PartProps extends DecideProps {
  isBusy: boolean;
  decide: (change: () => Promise<unknown>, done: string) => () => void;
}

function Approval({ run, step, decide, isBusy }: PartProps) {
  const [comment, setComment] = useState('');
  const [issues, setIssues] = useState<readonly FieldIssue[]>([]);
  const params = { runId: run.id, stepId: step.id };
  const answer = (approved: boolean, data?: unknown) => async () => {
    setIssues([]);
    const extra = { ...(comment ? { comment } : {}), ...(data === undefined ? {} : { data: data as never }) };
    await call('decideApproval', { params, body: { approved, ...extra } }).catch((error: ApiError) => {
      setIssues(issuesOf(error.details ?? {}, 'data'));
      throw error;
    });
  };
  const id = `comment-${run.id}-${step.id}`;
  return (
    <SchemaForm
      id={`data-${run.id}-${step.id}`}
      schema={(step.waitingFor?.form ?? {}) as FieldSchema}
      issues={issues}
      onSubmit={(data) => decide(answer(true, step.waitingFor?.form ? data : undefined), 'Approved.')()}
    >
      <label for={id}>Comment</label>
      <input id={id} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
      <button type="submit" class="primary" disabled={isBusy}>
        Approve
      </button>
      <button type="button" disabled={isBusy} onClick={decide(answer(false), 'Refused.')}>
        Refuse
      </button>
    </SchemaForm>
  );
}

function Signal({ run, step, decide, isBusy }: PartProps) {
  const [issues, setIssues] = useState<readonly FieldIssue[]>([]);
  const name = step.waitingFor?.name ?? '';
  const send = (payload: unknown) =>
    decide(async () => {
      setIssues([]);
      const body = { payload: payload as never };
      await call('sendSignal', { params: { runId: run.id, name }, body }).catch((error: ApiError) => {
        setIssues(issuesOf(error.details ?? {}, 'payload'));
        throw error;
      });
    }, 'The signal was sent.')();
  const form = step.waitingFor?.form as FieldSchema | undefined;
  const id = `payload-${run.id}-${step.id}`;
  if (!form || fieldsOf(form).length === 0) return <JsonSignal {...{ id, name, isBusy, onSend: send }} />;
  return (
    <SchemaForm id={id} schema={form} issues={issues} onSubmit={send}>
      <button type="submit" class="primary" disabled={isBusy}>
        Send
      </button>
    </SchemaForm>
  );
}

interface JsonSignalProps {
  id: string;
  name: string;
  isBusy: boolean;
  onSend: (payload: unknown) => void;
}

function JsonSignal({ id, name, isBusy, onSend }: JsonSignalProps) {
  const [text, setText] = useState('null');
  const payload = parsedJson(text);
  return (
    <>
      <JsonField id={id} label={`Payload of ${name} as JSON`} rows={1} text={text} onChange={setText} />
      <div class="actions">
        <button
          type="button"
          class="primary"
          disabled={isBusy || payload === undefined}
          onClick={() => onSend(payload)}
        >
          Send
        </button>
      </div>
    </>
  );
}

const CHOICES = [
  { action: 'retry', label: 'Run again', done: 'The step runs again.' },
  { action: 'succeed', label: 'Count as done', done: 'The step counts as done.' },
  { action: 'fail', label: 'Count as failed', done: 'The step counts as failed.' },
] as const;

function Interruption({ run, step, decide, isBusy }: PartProps) {
  const params = { runId: run.id, stepId: step.id };
  return (
    <div class="actions">
      {CHOICES.map(({ action, label, done }) => (
        <button
          key={action}
          type="button"
          disabled={isBusy}
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
