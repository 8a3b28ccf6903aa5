import { parentPort, workerData } from 'node:worker_threads';
import { createBoundedCache } from '../../../kit/data/bounded-cache.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import { Budget, OverBudget } from '../../../kit/expressions/budget.ts';
import type { ConfinedTask } from '../domain/definition/evaluator.ts';
import type { Scope } from '../domain/definition/expressions.ts';
import type { InputSchema } from '../domain/definition/input-schema.ts';
import {
  compileCondition,
  compileTemplate,
  type Evaluable,
  formatPath,
  TemplateError,
  type Written,
} from '../domain/definition/templates.ts';
import type { TaskMessage, TaskReply, ThreadStart } from './protocol.ts';

/** Maximum budget of a task, in cost units. A task with this budget takes less than 0.5 s. */
const MAX_OPERATIONS = 4_000_000;
const REMEMBERED_CHARS = 2 * 1024 * 1024;

const { current } = workerData as ThreadStart;
const compiled = createBoundedCache<Evaluable<unknown>>(REMEMBERED_CHARS, (text) => text.length);
const schemas = createBoundedCache<InputSchema>(REMEMBERED_CHARS, (text) => text.length);

function compiledOf(written: Written): Evaluable<unknown> {
  const text = JSON.stringify(written);
  const known = compiled.get(text);
  if (known) return known;
  const { kind, value, path } = written;
  // The list of issues is ignored, because the sender has already compiled the text without issues.
  const what =
    kind === 'template' ? compileTemplate(value, path, []) : compileCondition(value as string, path, []);
  compiled.set(text, what);
  return what;
}

async function schemaOf(schema: object): Promise<InputSchema> {
  const text = JSON.stringify(schema);
  const known = schemas.get(text);
  if (known) return known;
  const { compileInputSchema } = await import('../domain/definition/input-schema.ts');
  const made = compileInputSchema(schema);
  schemas.set(text, made);
  return made;
}

async function perform(task: ConfinedTask): Promise<unknown> {
  if (task.kind === 'check') return (await schemaOf(task.schema)).check(task.input);
  return compiledOf(task.written).evaluate(task.scope as Scope, new Budget(MAX_OPERATIONS, true));
}

function failureOf(error: unknown, task: ConfinedTask): { message: string; path: Path; isLimit: boolean } {
  const path = task.kind === 'evaluate' ? task.written.path : [task.part];
  if (error instanceof TemplateError)
    return { message: error.message, path: error.path, isLimit: error.isLimit };
  const why =
    error instanceof OverBudget
      ? `it does more than ${MAX_OPERATIONS} operations, which is the most for one value; do the work in a step`
      : messageOf(error);
  return { message: `${formatPath(path)}: ${why}`, path, isLimit: true };
}
type Path = Written['path'];

async function answer({ id, task }: TaskMessage): Promise<TaskReply> {
  Atomics.store(current, 0, id);
  try {
    return { id, ok: true, value: await perform(task) };
  } catch (error) {
    return { id, ok: false, error: failureOf(error, task) };
  } finally {
    Atomics.store(current, 0, 0);
  }
}

let last: Promise<void> = Promise.resolve();
parentPort!.on('message', (message: TaskMessage) => {
  // `current` holds the id of only one task, so tasks run one at a time.
  last = last.then(async () => parentPort!.postMessage(await answer(message)));
});
