import { useEffect, useRef, useState } from 'preact/hooks';
import { call, type Reply } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { Json } from '../../ui/json.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { useAction } from '../../ui/use-action.ts';
import { InputEditor } from './input-editor.tsx';
import { fieldsOf, inputOf, type Schema } from './schema.ts';

interface RunCommandProps {
  pluginId: string;
  command: { id: string; description: string | null };
  /** Whether the address names the command. Its form is then open. */
  isShown?: boolean;
}

/** A command of a plugin: its schema, its input, and its result. */
export function RunCommand({ pluginId, command: { id, description }, isShown = false }: RunCommandProps) {
  const [isOpen, setOpen] = useState(isShown);
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (!isShown) return;
    setOpen(true);
    details.current!.scrollIntoView({ block: 'nearest' });
  }, [isShown]);
  return (
    <details ref={details} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {id} {description && <span class="reason">{description}</span>}
      </summary>
      {isOpen && <Form pluginId={pluginId} commandId={id} />}
    </details>
  );
}

function Form({ pluginId, commandId }: { pluginId: string; commandId: string }) {
  const params = { pluginId: pluginId as never, commandId };
  const { data, error, reload } = useQuery('getCommand', { params });
  if (error) return <Failure error={error} onRetry={reload} />;
  if (!data) return <Loading what="the schema" />;
  return <CommandForm pluginId={pluginId} commandId={commandId} schema={data.input} />;
}

interface CommandFormProps {
  pluginId: string;
  commandId: string;
  schema: Schema | null;
}

function CommandForm({ pluginId, commandId, schema }: CommandFormProps) {
  const params = { pluginId: pluginId as never, commandId };
  const [input, setInput] = useState<unknown>(() => inputOf(fieldsOf(schema) ?? [], {}));
  const [outcome, setOutcome] = useState<Reply<'runCommand'>>();
  const action = useAction();
  const run = (): void =>
    action.run(async () => {
      setOutcome(undefined);
      const reply = await call('runCommand', { params, body: { input } });
      setOutcome(reply);
      return reply.exitCode === 0
        ? 'The command succeeded.'
        : `The command failed with exit code ${reply.exitCode}.`;
    });
  return (
    <div class="decide">
      <InputEditor id={`command-${commandId}`} schema={schema} onChange={setInput} />
      <div class="actions">
        <button type="button" class="primary" disabled={input === undefined || action.isBusy} onClick={run}>
          Run
        </button>
      </div>
      <Notice action={action} />
      {outcome && <Json value={outcome} label={`Result of ${commandId}`} />}
    </div>
  );
}
