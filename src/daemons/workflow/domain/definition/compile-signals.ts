import type { CodeWorkflowDefinition, Role, WorkflowDefinition } from '../../../../contracts/index.ts';
import { canonicalJson } from '../../../../kit/data/json.ts';
import { approversFault, formShapeFault } from '../steps/kinds/approval.ts';
import type { CompiledWorkflow } from './compiled-workflow.ts';
import { type InputSchema, schemaAt } from './input-schema.ts';
import { addIssue, type DefinitionIssue, OPENING, type Path } from './templates.ts';

type Written = Pick<CodeWorkflowDefinition, 'signals' | 'signalApprovers'> &
  Partial<Pick<WorkflowDefinition, 'jobs'>>;
type Key = 'form' | 'approvers';

interface SignalStep {
  name: string;
  path: Path;
}

/** Field of the definition that says the same as a field of the steps. */
const GLOBAL = { form: 'signals', approvers: 'signalApprovers' } as const;

/**
 * Collects the schemas and senders of signals by name, from the definition and from its steps. Signals can arrive before
 * their step begins, so the definition alone determines both. @spec docs/workflows.md "Forms"
 */
export function compileSignals(
  definition: Written,
  schemas: Parameters<typeof schemaAt>[2],
): Pick<CompiledWorkflow, 'signalSchemas' | 'signalApprovers'> {
  const compiled = new SignalRules(definition, schemas);
  for (const [jobId, { steps }] of Object.entries(definition.jobs ?? {}))
    for (const [index, step] of steps.entries())
      if (step.uses === 'signal') compiled.addStep(step.with, ['jobs', jobId, 'steps', index, 'with']);
  return compiled;
}

class SignalRules {
  readonly signalSchemas = new Map<string, InputSchema>();
  readonly signalApprovers = new Map<string, readonly Role[]>();
  readonly #definition: Written;
  readonly #schemas: Parameters<typeof schemaAt>[2];
  /** What steps say about a signal, as canonical JSON, by field and name. */
  readonly #ofSteps = new Map<string, string>();

  constructor(definition: Written, schemas: Parameters<typeof schemaAt>[2]) {
    this.#definition = definition;
    this.#schemas = schemas;
    for (const [name, written] of Object.entries(definition.signals ?? {}))
      this.#addForm(name, written, ['signals', name]);
    for (const [name, { roles }] of Object.entries(definition.signalApprovers ?? {}))
      this.signalApprovers.set(name, roles);
  }

  addStep(input: WorkflowDefinition['jobs'][string]['steps'][number]['with'], path: Path): void {
    const { name, form, approvers } = input;
    if (form == null && approvers == null) return;
    if (typeof name !== 'string' || name.includes(OPENING)) {
      const message = 'must be a text without expressions, as the step has a form or approvers';
      this.#report([...path, 'name'], message);
      return;
    }
    if (form != null && this.#isNew('form', form, { name, path }, formShapeFault(form)))
      this.#addForm(name, form as object, [...path, 'form']);
    if (approvers != null && this.#isNew('approvers', approvers, { name, path }, approversFault(approvers)))
      this.signalApprovers.set(name, (approvers as { roles: Role[] }).roles);
  }

  #addForm(name: string, written: object, path: Path): void {
    const schema = schemaAt(path, written, this.#schemas);
    if (schema) this.signalSchemas.set(name, schema);
  }

  /** Reports faults of the field of a step. Returns whether the field is valid and the first of its signal. */
  #isNew(key: Key, value: unknown, { name, path }: SignalStep, fault: string | undefined): boolean {
    const text = canonicalJson(value);
    const earlier = this.#ofSteps.get(`${key} ${name}`);
    const found = text.includes(OPENING)
      ? 'must not contain expressions, because a signal can arrive before the step begins'
      : (fault ?? this.#conflict(key, name, earlier !== undefined && earlier !== text));
    if (found !== undefined) this.#report([...path, key], found);
    else this.#ofSteps.set(`${key} ${name}`, text);
    return found === undefined && earlier === undefined;
  }

  #conflict(key: Key, name: string, differs: boolean): string | undefined {
    if (Object.hasOwn(this.#definition[GLOBAL[key]] ?? {}, name))
      return `is given twice for the signal "${name}": remove it here, or remove ${GLOBAL[key]}.${name}`;
    return differs
      ? `differs from another step that waits for the signal "${name}"; a signal has one ${key === 'form' ? 'form' : 'list of approvers'}`
      : undefined;
  }

  #report(path: Path, message: string): void {
    const issues: DefinitionIssue[] = this.#schemas.issues;
    addIssue(issues, { path, message });
  }
}
