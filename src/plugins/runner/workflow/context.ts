import type { PluginContextV3, PluginLog } from '../../../contracts/plugin-context.ts';
import { CODE_STEP } from '../../../contracts/step-name.ts';
import type {
  ApprovalOptions,
  ChildOptions,
  SignalOptions,
  SleepUntil,
  StepInfo,
  StepOptions,
  WorkflowContext,
} from '../../../contracts/workflow-context.ts';
import { RunnerFailure } from '../failure.ts';
import { signalSchema, type WorkflowParts } from '../handler.ts';
import { checkWith } from '../schemas.ts';
import { branchFor, currentBranch, draw, emitPlace, isInStep } from './branches.ts';
import type { Replay } from './replay.ts';
import type { ReplayLink, StepRequest } from './replay-link.ts';
import { StepFactory, wrong } from './step-factory.ts';

const STATIC_RULES =
  'signals can arrive before the wait, so declare "signals" and "signalApprovers" in the manifest entry of the workflow.';

/**
 * Builds the context of a workflow function, which adds steps to the context of a handler. `unstarted` returns the
 * names of steps without `await`.
 */
export function createWorkflowContext(
  base: PluginContextV3,
  replay: Replay,
  link: Pick<ReplayLink, 'replay' | 'emitter'>,
  workflow: WorkflowParts,
): { context: WorkflowContext; unstarted: () => string[] } {
  const steps = new StepFactory(replay);
  const context = {
    ...base,
    log: quietLog(base.log, () => replay.isReplaying && !isInStep()),
    ...localSteps(steps, workflow),
    ...calledSteps(steps, workflow),
    ...branching(steps, replay),
    ...replayedValues(replay, link.replay.seed),
    emit: link.emitter(() => emitPlace(replay.trunk)),
  };
  return { context: context as unknown as WorkflowContext, unstarted: () => steps.unstarted };
}

/** Creates the context methods for steps that call neither a command nor a child workflow. */
function localSteps(steps: StepFactory, workflow: WorkflowParts) {
  return {
    step: (name: string, run: (step: StepInfo) => unknown, options: StepOptions = {}) => {
      if (typeof run !== 'function')
        throw wrong(`ctx.step(${JSON.stringify(name)}): the second argument must be a function`);
      return steps.make('ctx.step', name, {
        uses: CODE_STEP,
        with: {},
        ...over(workflow.steps, options),
        run,
      });
    },
    sleep: (...args: [SleepUntil] | [string, SleepUntil]) => {
      const [name, until] = args.length === 1 ? ['sleep', args[0]] : args;
      return steps.make('ctx.sleep', name, { uses: 'wait', with: timeOf(until), options: {} });
    },
    waitForSignal: (name: string, options: SignalOptions = {}) => {
      const rule = ['form', 'approvers'].find((key) => key in options);
      if (rule) throw new TypeError(`ctx.waitForSignal takes no "${rule}": ${STATIC_RULES}`);
      return steps.make('ctx.waitForSignal', name, {
        uses: 'signal',
        with: { name, timeoutMs: options.timeoutMs, agents: options.agents },
        options: {},
        decode: payloadReader(workflow, name),
      });
    },
    approval: (name: string, { message, timeoutMs, form, approvers, agents }: ApprovalOptions = {}) =>
      steps.make('ctx.approval', name, {
        uses: 'approval',
        with: { message, timeoutMs, form, approvers, agents },
        options: {},
      }),
  };
}

/** Creates the context methods for steps that call commands and child workflows. */
function calledSteps(steps: StepFactory, { steps: defaults }: WorkflowParts) {
  return {
    invoke: (
      command: string,
      input: Record<string, unknown> = {},
      { name = nameOf(command), ...options }: StepOptions & { name?: string } = {},
    ) => {
      const { retry, timeoutMs } = defaults;
      const inherited = { ...(retry && { retry }), ...(timeoutMs !== undefined && { timeoutMs }) };
      return steps.make('ctx.invoke', name, { uses: command, with: input, ...over(inherited, options) });
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
      return steps.make('ctx.runWorkflow', name, { uses: 'workflow', with: { id, input }, ...options });
    },
  };
}

function branching(steps: StepFactory, replay: Replay) {
  return {
    all: async (items: readonly unknown[]) => {
      const branch = branchFor(replay.trunk, 'ctx.all');
      if (!Array.isArray(items)) throw wrong('ctx.all takes a list of steps and functions');
      return replay.fork(
        branch,
        items.map((item, index) => steps.bodyOf(branch, item, index)),
      );
    },
    nonCancellable: async (work: () => unknown) => {
      const branch = branchFor(replay.trunk, 'ctx.nonCancellable');
      if (typeof work !== 'function') throw wrong('ctx.nonCancellable takes a function');
      branch.shields++;
      try {
        return await work();
      } finally {
        branch.shields--;
      }
    },
  };
}

/** Creates `ctx.now`, `ctx.random` and `ctx.uuid`, which return the same values in each replay. */
function replayedValues({ trunk }: Replay, seed: string) {
  return {
    now: () => currentBranch(trunk).now,
    random: () => draw(seed, branchFor(trunk, 'ctx.random')).readUIntBE(0, 6) / 2 ** 48,
    uuid: () => uuidOf(draw(seed, branchFor(trunk, 'ctx.uuid'))),
  };
}

/**
 * Returns a function that validates a signal's payload again, because the schema could have changed since the signal
 * was accepted. Returns undefined for a signal without a schema.
 */
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
 * Adds the workflow's default options to a step's options. Marks an inherited `retry`, because only a step's own
 * `retry` declares that the step is safe to repeat.
 */
function over(defaults: StepOptions, options: StepOptions): Pick<StepRequest, 'options' | 'inheritsRetry'> {
  const { retry = defaults.retry } = options;
  const isInherited = retry !== undefined && options.retry === undefined;
  return {
    options: { ...defaults, ...options, ...(retry && { retry }) },
    ...(isInherited && { inheritsRetry: true }),
  };
}

/** Wraps a log and suppresses lines that were already written in an earlier replay. */
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

/**
 * Returns the default name of a step that calls a command. For example, the name for `@acme/shop/charge` is `charge`.
 */
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
