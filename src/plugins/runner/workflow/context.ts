import type { PluginContextV3, PluginLog } from '../../../contracts/plugin-context.ts';
import { CODE_STEP, isStepName } from '../../../contracts/step-name.ts';
import type {
  ChildOptions,
  SleepUntil,
  StepInfo,
  StepOptions,
  WorkflowContext,
} from '../../../contracts/workflow-context.ts';
import { RunnerFailure } from '../failure.ts';
import { signalSchema, type WorkflowParts } from '../handler.ts';
import { checkWith } from '../schemas.ts';
import { type Branch, branchFor, currentBranch, draw, isInStep, runInBranch, stepId } from './branches.ts';
import { LazyStep } from './lazy-step.ts';
import type { Pass } from './pass.ts';
import type { StepRequest } from './pass-link.ts';

/**
 * Builds a workflow function's context: a handler's context plus steps. `unstarted` lists steps that were
 * created but not awaited.
 */
export function createWorkflowContext(
  base: PluginContextV3,
  pass: Pass,
  seed: string,
  workflow: WorkflowParts,
): { context: WorkflowContext; unstarted: () => string[] } {
  const { trunk } = pass;
  const { steps: defaults } = workflow;
  const made = new Set<LazyStep<unknown>>();

  function make(what: string, name: string, request: StepRequest): Promise<never> {
    const branch = branchFor(trunk, `${what}("${name}")`);
    if (!isStepName(name))
      throw wrong(`${what}: a step's name is 1 to 64 letters, digits and _ . -, not ${JSON.stringify(name)}`);
    const lazy: LazyStep<unknown> = new LazyStep(name, () =>
      begin(lazy, branch, stepId(branch, name), request),
    );
    requests.set(lazy, request);
    made.add(lazy);
    return lazy as Promise<unknown> as Promise<never>;
  }

  const requests = new WeakMap<LazyStep<unknown>, StepRequest>();

  function begin(
    lazy: LazyStep<unknown>,
    branch: Branch,
    id: string,
    request: StepRequest,
  ): Promise<unknown> {
    made.delete(lazy);
    return pass.take(branch, id, request);
  }

  /** The body of a `ctx.all` branch: a step, which keeps its id from the parent branch, or a function. */
  function bodyOf(parent: Branch, item: unknown, index: number): (branch: Branch) => Promise<unknown> {
    if (item instanceof LazyStep) {
      const id = stepId(parent, item.name);
      const request = requests.get(item)!;
      // Steps with a function of their own need a replay to run, so they are not joint.
      const asked: StepRequest = request.run ? request : { ...request, joint: true };
      return (branch) => item.startAs(() => begin(item, branch, id, asked));
    }
    if (typeof item === 'function') return (branch) => runInBranch(branch, async () => item());
    throw wrong(
      `ctx.all: item ${index} is neither a step nor a function. { … } => Pass a step such as ctx.step(…), or async () => { … } => { … }`,
    );
  }

  const context = {
    ...base,
    log: quietLog(base.log, () => pass.isReplaying && !isInStep()),
    step: (name: string, run: (step: StepInfo) => unknown, options: StepOptions = {}) => {
      if (typeof run !== 'function')
        throw wrong(`ctx.step(${JSON.stringify(name)}): the second argument must be a function`);
      return make('ctx.step', name, { uses: CODE_STEP, with: {}, ...over(defaults, options), run });
    },
    sleep: (...args: [SleepUntil] | [string, SleepUntil]) => {
      const [name, until] = args.length === 1 ? ['sleep', args[0]] : args;
      return make('ctx.sleep', name, { uses: 'wait', with: timeOf(until), options: {} });
    },
    waitForSignal: (name: string, { timeoutMs }: { timeoutMs?: number } = {}) =>
      make('ctx.waitForSignal', name, {
        uses: 'signal',
        with: { name, timeoutMs },
        options: {},
        decode: payloadReader(workflow, name),
      }),
    approval: (name: string, { message, timeoutMs }: { message?: string; timeoutMs?: number } = {}) =>
      make('ctx.approval', name, { uses: 'approval', with: { message, timeoutMs }, options: {} }),
    invoke: (
      command: string,
      input: Record<string, unknown> = {},
      { name = nameOf(command), ...options }: StepOptions & { name?: string } = {},
    ) => {
      const { retry, timeoutMs } = defaults;
      const inherited = { ...(retry && { retry }), ...(timeoutMs !== undefined && { timeoutMs }) };
      return make('ctx.invoke', name, { uses: command, with: input, ...over(inherited, options) });
    },
    runWorkflow: (
      id: string,
      input: unknown = {},
      { name = nameOf(id), retry, ...unknown }: ChildOptions & Record<string, unknown> = {},
    ) => {
      const [other] = Object.keys(unknown);
      if (other !== undefined)
        throw wrong(`ctx.runWorkflow takes the options "name" and "retry", not ${JSON.stringify(other)}`);
      const inherited = defaults.retry ? { retry: defaults.retry } : {};
      const options = over(inherited, retry ? { retry } : {});
      return make('ctx.runWorkflow', name, { uses: 'workflow', with: { id, input }, ...options });
    },
    all: async (items: readonly unknown[]) => {
      const branch = branchFor(trunk, 'ctx.all');
      if (!Array.isArray(items)) throw wrong('ctx.all takes a list of steps and functions');
      return pass.fork(
        branch,
        items.map((item, index) => bodyOf(branch, item, index)),
      );
    },
    nonCancellable: async (work: () => unknown) => {
      const branch = branchFor(trunk, 'ctx.nonCancellable');
      if (typeof work !== 'function') throw wrong('ctx.nonCancellable takes a function');
      branch.shields++;
      try {
        return await work();
      } finally {
        branch.shields--;
      }
    },
    now: () => currentBranch(trunk).now,
    random: () => draw(seed, branchFor(trunk, 'ctx.random')).readUIntBE(0, 6) / 2 ** 48,
    uuid: () => uuidOf(draw(seed, branchFor(trunk, 'ctx.uuid'))),
  };
  return {
    context: context as unknown as WorkflowContext,
    unstarted: () => [...made].map(({ name }) => name),
  };
}

/** Validates a signal's payload again: the schema may have changed since the signal was accepted. */
function payloadReader(workflow: WorkflowParts, name: string): StepRequest['decode'] {
  const schema = signalSchema(workflow, name);
  if (!schema) return undefined;
  return async (output) => {
    const received = output as { payload: unknown };
    const found = await checkWith(schema, received.payload);
    if (found.ok) return { ...received, payload: found.value };
    const [first] = found.issues;
    const at = ['payload', ...first!.path].join('.');
    throw new RunnerFailure(
      'VALIDATION_ERROR',
      `The signal "${name}" does not fit its schema: ${at}: ${first!.message}`,
      { issues: found.issues },
    );
  };
}

/**
 * Merges a step's options into the workflow's defaults. An inherited `retry` is marked, since it does not
 * declare this step safe to repeat.
 */
function over(defaults: StepOptions, options: StepOptions): Pick<StepRequest, 'options' | 'inheritsRetry'> {
  const { retry = defaults.retry } = options;
  const isInherited = retry !== undefined && options.retry === undefined;
  return {
    options: { ...defaults, ...options, ...(retry && { retry }) },
    ...(isInherited && { inheritsRetry: true }),
  };
}

/** Suppresses lines that an earlier replay has already written. */
function quietLog(log: PluginLog, isQuiet: () => boolean): PluginLog {
  const levels = Object.keys(log) as Array<keyof PluginLog>;
  return Object.fromEntries(
    levels.map((level) => [
      level,
      (message: string, meta?: Record<string, unknown>) => {
        if (!isQuiet()) log[level](message, meta);
      },
    ]),
  ) as PluginLog;
}

function timeOf(until: SleepUntil): Record<string, unknown> {
  if (typeof until === 'number' && Number.isFinite(until) && until >= 0) return { ms: Math.ceil(until) };
  const at =
    until instanceof Date ? until.getTime() : typeof until === 'string' ? Date.parse(until) : Number.NaN;
  if (Number.isFinite(at)) return { until: at };
  throw wrong(
    `ctx.sleep: pass milliseconds (0 or more), a Date or a string such as "2030-01-31T08:00:00Z", not ${String(until)}`,
  );
}

/** Default step name: `charge` for `@acme/shop/charge`. */
function nameOf(ref: unknown): string {
  return String(ref)
    .split('/')
    .at(-1)!
    .replaceAll(/[^A-Za-z0-9_.-]/g, '-');
}

function uuidOf(bytes: Buffer): string {
  bytes[6] = 0x40 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

function wrong(what: string): RunnerFailure {
  return new RunnerFailure('VALIDATION_ERROR', `${what}.`);
}
