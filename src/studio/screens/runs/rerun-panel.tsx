import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { WorkflowRun } from '../../../contracts/workflow-records.ts';
import { type ApiError, call, type Input, type Reply } from '../../api/call.ts';
import { parsedJson } from '../../ui/json.tsx';
import { JsonField } from '../../ui/json-field/json-field.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Section } from '../../ui/section.tsx';
import { useAction } from '../../ui/use-action.ts';

type Preview = Reply<'previewRerun'>;
type Body = NonNullable<Input<'rerunRun'>['body']>;

interface RerunPanelProps {
  run: WorkflowRun;
  /** Undefined to repeat all steps. */
  fromStep: string | undefined;
  onClose: () => void;
}

const TYPING_MS = 300;

/** Form of a rerun: its input, and which steps are reused and which run again. */
export function RerunPanel({ run, fromStep, onClose }: RerunPanelProps) {
  const { route } = useLocation();
  const written = JSON.stringify(run.input, null, 2);
  const [text, setText] = useState(written);
  const action = useAction();
  const input = parsedJson(text);
  const body = {
    ...(fromStep === undefined ? {} : { fromStep }),
    // An unchanged input reuses more results, so only a changed one is sent.
    ...(text === written ? {} : { input }),
  } as Body;
  const isJson = input !== undefined;
  const preview = usePreview(run.id, isJson ? body : undefined);
  const start = async (): Promise<string> => {
    const started = await call('rerunRun', { params: { runId: run.id }, body });
    onClose();
    route(`/studio/runs/${started.run.id}`);
    return '';
  };
  const isReady = isJson && preview !== undefined && !('error' in preview) && !action.isBusy;
  return (
    <Section title={fromStep === undefined ? 'Run again' : `Run again from ${fromStep}`}>
      <form
        class="decide rerun"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) action.run(start);
        }}
      >
        <JsonField
          id="rerun-input"
          label="Input of the new run"
          rows={Math.min(16, written.split('\n').length + 1)}
          text={text}
          onChange={setText}
          focusKey={fromStep ?? ''}
        />
        {isJson && <Outlook preview={preview} />}
        {action.isFailed && <Notice action={action} />}
        <div class="actions">
          <button type="submit" class="primary" disabled={!isReady}>
            Start the new run
          </button>
          <button type="button" onClick={onClose}>
            Close
          </button>
        </div>
      </form>
    </Section>
  );
}

function Outlook({ preview }: { preview: Preview | { error: ApiError } | undefined }) {
  if (!preview) return <p role="status">Looking which steps are reused…</p>;
  if ('error' in preview)
    return (
      <p class="error" role="alert">
        {preview.error.message}
      </p>
    );
  const { reused, repeated, notes } = preview;
  return (
    <div class="columns" role="status">
      <Steps title="Reused" steps={reused} none="No result is reused." />
      <Steps title="Runs again" steps={repeated} none="No known step runs again." />
      {notes.map((note) => (
        <p key={note} class="advice">
          {note}
        </p>
      ))}
    </div>
  );
}

function Steps({ title, steps, none }: { title: string; steps: Preview['reused']; none: string }) {
  return (
    <div>
      <strong>
        {title} ({steps.length})
      </strong>
      {steps.length === 0 ? (
        <p>{none}</p>
      ) : (
        <ul>
          {steps.map(({ id, status }) => (
            <li key={id}>
              {id}, {status} before
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Asks for a preview when typing pauses. Undefined until it is there. */
function usePreview(
  runId: WorkflowRun['id'],
  body: Body | undefined,
): Preview | { error: ApiError } | undefined {
  const [known, setKnown] = useState<{ key: string; preview: Preview | { error: ApiError } }>();
  const key = JSON.stringify([runId, body]);
  useEffect(() => {
    if (!body) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      call('previewRerun', { params: { runId }, body }, { signal: controller.signal }).then(
        (preview) => setKnown({ key, preview }),
        (error: ApiError) => controller.signal.aborted || setKnown({ key, preview: { error } }),
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);
  return known?.key === key ? known.preview : undefined;
}
