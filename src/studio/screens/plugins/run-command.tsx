import { useState } from 'preact/hooks';
import { call, type Reply } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { Json, parsedJson } from '../../ui/json.tsx';
import { Notice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/use-action.ts';

interface RunCommandProps {
  pluginId: string;
  command: { id: string; description: string | null };
}

/** A command of a plugin: its schema, its input, and its result. */
export function RunCommand({ pluginId, command: { id, description } }: RunCommandProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {id} {description && <span class="reason">{description}</span>}
      </summary>
      {isOpen && <Form pluginId={pluginId} commandId={id} />}
    </details>
  );
}

function Form({ pluginId, commandId }: { pluginId: string; commandId: string }) {
  const params = { pluginId: pluginId as never, commandId };
  const { data } = useQuery('getCommand', { params });
  const [text, setText] = useState('{}');
  const [outcome, setOutcome] = useState<Reply<'runCommand'>>();
  const action = useAction();
  const input = parsedJson(text);
  const run = (): void =>
    action.run(async () => {
      setOutcome(undefined);
      const reply = await call('runCommand', { params, body: { input } });
      setOutcome(reply);
      return reply.exitCode === 0
        ? 'The command succeeded.'
        : `The command failed with exit code ${reply.exitCode}.`;
    });
  const inputId = `input-${commandId}`;
  return (
    <div class="decide">
      {data?.input && <Json value={data.input} label={`Schema of the input of ${commandId}`} />}
      <label for={inputId}>Input as JSON</label>
      <textarea id={inputId} rows={5} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="actions">
        <button type="button" class="primary" disabled={input === undefined || action.isBusy} onClick={run}>
          Run
        </button>
        {input === undefined && <span class="error">The input is not JSON.</span>}
      </div>
      <Notice action={action} />
      {outcome && <Json value={outcome} label={`Result of ${commandId}`} />}
    </div>
  );
}
