import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { callRoute, type RouteAnswer } from '../../api/route-call.ts';
import { Json, Preformatted, parsedJson } from '../../ui/json.tsx';
import { Notice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/use-action.ts';
import { Fields, InputEditor } from './input-editor.tsx';
import { type Field, fieldOf, fieldsOf, inputOf, resolved, type Schema, type Texts } from './schema.ts';

interface Route {
  method: string;
  /** Path with parameters as `:name`. */
  path: string;
  security: readonly string[];
}

/** A route of a plugin: its parameters, its body, and its answer. */
export function RunRoute({ route }: { route: Route }) {
  const [isOpen, setOpen] = useState(false);
  const { method, path, security } = route;
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {method} {path} {security.length > 0 && <span class="reason">needs {security.join(' or ')}</span>}
      </summary>
      {isOpen && <Form route={route} />}
    </details>
  );
}

function Form({ route: { method, path } }: { route: Route }) {
  const described = useOperation(method, path);
  if (described === undefined) return <p role="status">Loading the schema…</p>;
  return <RouteForm {...{ method, path, described }} />;
}

interface RouteFormProps {
  method: string;
  path: string;
  described: Described;
}

function RouteForm({ method, path, described: { operation, root } }: RouteFormProps) {
  const id = `route-${method}-${path.replace(/[^A-Za-z0-9]+/g, '-')}`;
  const { inPath, inQuery } = useMemo(() => parametersOf(path, operation, root), [path, operation]);
  const bodySchema = operation?.requestBody?.content?.['application/json']?.schema ?? null;
  const takesBody = method !== 'GET' && method !== 'HEAD' && (bodySchema !== null || method !== 'DELETE');
  const [texts, setTexts] = useState<Texts>({});
  const [body, setBody] = useState<unknown>(() => inputOf(fieldsOf(bodySchema, root) ?? [], {}));
  const [answer, setAnswer] = useState<RouteAnswer>();
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const action = useAction();
  const filled = inputOf(inPath, texts);
  const query = inputOf(inQuery, texts);
  const isReady = filled && Object.values(filled).every((value) => value !== '') && query;
  const run = async (): Promise<string> => {
    setAnswer(undefined);
    running.current = new AbortController();
    const url = urlOf(path, filled!, query!);
    const reply = await callRoute(method, url, takesBody ? body : undefined, running.current.signal);
    setAnswer(reply);
    return `The route answered ${reply.status}.`;
  };
  return (
    <div class="decide">
      {inPath.length + inQuery.length > 0 && (
        <Fields id={id} fields={[...inPath, ...inQuery]} texts={texts} onChange={setTexts} />
      )}
      {takesBody && <InputEditor id={id} schema={bodySchema} root={root} onChange={setBody} />}
      <div class="actions">
        <button
          type="button"
          class="primary"
          disabled={!isReady || (takesBody && body === undefined) || action.isBusy}
          onClick={() => action.run(run)}
        >
          Call
        </button>
        {action.isBusy && (
          <button type="button" onClick={() => running.current?.abort()}>
            Stop
          </button>
        )}
      </div>
      <Notice action={action} />
      {answer && <Answer answer={answer} label={`Answer of ${method} ${path}`} />}
    </div>
  );
}

/** The answer as text. HTML of a plugin is never rendered. */
function Answer({ answer: { contentType, text }, label }: { answer: RouteAnswer; label: string }) {
  const parsed = contentType.includes('json') ? parsedJson(text) : undefined;
  if (parsed !== undefined) return <Json value={parsed} label={label} />;
  return text === '' ? null : <Preformatted text={text} label={label} />;
}

interface Operation {
  parameters?: ReadonlyArray<{
    name: string;
    in: string;
    required?: boolean;
    schema?: Schema;
    $ref?: string;
  }>;
  requestBody?: { content?: Record<string, { schema?: Schema }> };
}

interface Described {
  /** Undefined if the API description lacks the route. */
  operation: Operation | undefined;
  root: unknown;
}

interface Document {
  paths?: Record<string, Record<string, Operation>>;
}

/** Returns a route as the API description of the gateway describes it. Undefined while it is loaded. */
function useOperation(method: string, path: string): Described | undefined {
  const [described, setDescribed] = useState<Described>();
  useEffect(() => {
    const controller = new AbortController();
    void load(controller.signal).then((root) => {
      if (controller.signal.aborted) return;
      const template = path.replace(/:(\w+)/g, '{$1}');
      setDescribed({ operation: root.paths?.[template]?.[method.toLowerCase()], root });
    });
    return () => controller.abort();
  }, [method, path]);
  return described;
}

/** Loads the API description. Without it, routes are called without a schema. */
async function load(signal: AbortSignal): Promise<Document> {
  try {
    const response = await fetch('/openapi-merged.json', { signal });
    return response.ok ? ((await response.json()) as Document) : {};
  } catch {
    return {};
  }
}

function parametersOf(path: string, operation: Operation | undefined, root: unknown) {
  const inPath: Field[] = [...path.matchAll(/:(\w+)/g)].map(([, name]) =>
    fieldOf(name!, { type: 'string' }, true),
  );
  const inQuery = (operation?.parameters ?? [])
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, required = false, schema }) => fieldOf(name, resolved(schema, root), required));
  return { inPath, inQuery };
}

function urlOf(path: string, params: Record<string, unknown>, query: Record<string, unknown>): string {
  const filled = path.replace(/:(\w+)/g, (_match, name: string) => encodeURIComponent(String(params[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? value : [value])
      search.append(name, typeof each === 'object' ? JSON.stringify(each) : String(each));
  return search.size > 0 ? `${filled}?${search}` : filled;
}
