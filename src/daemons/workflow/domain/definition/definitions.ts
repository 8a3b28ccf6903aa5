import {
  isCodeWorkflow,
  toolNameProblem,
  type WorkflowFault,
  type WorkflowSummary,
  workflowToolName,
} from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/data/bounded-cache.ts';
import { nearest } from '../../../../kit/data/nearest.ts';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';
import type { DefinitionRecord } from '../../../../store/ports/index.ts';
import { compileCode, pinnedCode } from './compile-code.ts';
import { compileDefinition } from './compile-definition.ts';
import type { CompiledWorkflow, KindOf } from './compiled-workflow.ts';
import { type ReportedIssue, reportedPath } from './definition-faults.ts';
import { endHandlerFaults, type HandlerFaultOf } from './end-handler-faults.ts';
import { refusePluginScripts } from './scripts.ts';
import type { DefinitionIssue } from './templates.ts';
import { type FindPlugin, unknownHandlers, unresolved } from './unresolved.ts';

export interface FoundDefinition {
  /** File path of the definition, or id of the plugin that declares the definition. */
  source: string;
  definition: unknown;
  /** Plugin whose manifest contains the definition. Workflows written in code are allowed only in manifests. */
  pluginId?: string;
  /** Checks the handlers of ended runs. Definitions in files may have all handlers. */
  handlerFault?: HandlerFaultOf;
  /** Adds the position in the definition file to a fault. */
  locate?(issue: ReportedIssue): WorkflowFault;
}

export interface RegisteredWorkflow {
  workflow: CompiledWorkflow;
  source: string;
}

/** Maximum number of workflows whose plugin id is kept after the plugin was unloaded. */
const MAX_AWAY = 10_000;
/**
 * Maximum length of a definition as JSON, in characters. Callers can send inline definitions, and all tenants share the
 * memory.
 */
const MAX_DEFINITION_CHARS = 1024 * 1024;
const REMEMBERED_CHARS = 4 * MAX_DEFINITION_CHARS;

export interface DefinitionsDeps {
  kindOf: KindOf;
  find(hash: string): Promise<DefinitionRecord | undefined>;
  /** Finds plugins to which definitions refer. If undefined, any plugin id is accepted. */
  findPlugin?: FindPlugin;
  /** Ids of workflows that are not registered here and to which handlers of ended runs can refer. */
  otherWorkflows?: readonly string[];
}

/** Registry and cache of compiled workflow definitions. */
export class Definitions {
  readonly #deps: DefinitionsDeps;
  readonly #registered = new Map<string, RegisteredWorkflow>();
  /** Maps the ids of workflows whose plugin is no longer loaded to plugin ids. The oldest entry is first. */
  readonly #away = new Map<string, string>();
  readonly #faults: WorkflowFault[] = [];
  readonly #byText = createBoundedCache<CompiledWorkflow>(REMEMBERED_CHARS, (text) => text.length);
  readonly #compiled = createBoundedCache<CompiledWorkflow>(REMEMBERED_CHARS, (_, { body }) => body.length);

  constructor(deps: DefinitionsDeps) {
    this.#deps = deps;
  }

  get registered(): ReadonlyMap<string, RegisteredWorkflow> {
    return this.#registered;
  }

  get faults(): readonly WorkflowFault[] {
    return this.#faults;
  }

  /** Compiles an inline definition of a request. Throws VALIDATION_ERROR or PAYLOAD_TOO_LARGE. */
  compile(written: unknown): CompiledWorkflow {
    // Compiled definitions are cached by text, because callers often send the same definition repeatedly.
    const text = JSON.stringify(written);
    const same = this.#byText.get(text);
    if (same) return same;
    if (text.length > MAX_DEFINITION_CHARS)
      throw new PlatformError(
        'PAYLOAD_TOO_LARGE',
        `The definition takes ${text.length} characters as JSON; the limit is ${MAX_DEFINITION_CHARS}. Pass large data as input, or store it elsewhere.`,
      );
    const workflow = this.#remember(compileDefinition(written, this.#deps.kindOf));
    this.#byText.set(text, workflow);
    return workflow;
  }

  /** Replaces the registered definitions. Definitions with faults are reported and skipped. */
  register(found: readonly FoundDefinition[], other: readonly WorkflowFault[] = []): void {
    const before = new Map(this.#registered);
    this.#registered.clear();
    this.#faults.splice(0, this.#faults.length, ...other);
    for (const one of found) this.#registerOne(one);
    this.#removeRefused(found);
    this.#noteAway(before);
    const sources = new Set(Array.from(this.#registered.values(), ({ source }) => source));
    // If an edited file has faults, the faults are reported and the last valid definition stays registered.
    for (const [id, kept] of before)
      if (!this.#registered.has(id) && !sources.has(kept.source) && isBrokenFile(kept.source, this.#faults))
        this.#registered.set(id, kept);
    this.#reportUnknownHandlers(found);
  }

  /** Adds a fault that was found outside `register`. */
  fault(fault: WorkflowFault): void {
    this.#faults.push(fault);
  }

  /** Returns a registered workflow. Throws WORKFLOW_NOT_FOUND if no workflow has this id. */
  require(id: string): CompiledWorkflow {
    const found = this.#registered.get(id);
    if (found) return found.workflow;
    const pluginId = this.#away.get(id);
    if (pluginId !== undefined && !this.#isLoaded(pluginId))
      throw new PlatformError(
        'WORKFLOW_NOT_FOUND',
        `The workflow "${id}" belongs to the plugin ${pluginId}, which is not loaded; \`svc plugins list\` shows its state.`,
        { details: { workflowId: id, pluginId, reason: 'not_loaded' } },
      );
    const near = nearest(id, [...this.#registered.keys()]);
    throw new PlatformError(
      'WORKFLOW_NOT_FOUND',
      `There is no workflow "${id}"${near ? `; did you mean "${near}"?` : '; `svc workflows list` shows the registered workflows.'}`,
      { details: { workflowId: id } },
    );
  }

  /** Returns the cached definition with this hash, if any. */
  cached(hash: string): CompiledWorkflow | undefined {
    return this.#compiled.get(hash);
  }

  /**
   * Returns the definition with this hash from the cache or the store. Throws WORKFLOW_NOT_FOUND if neither contains
   * the definition.
   */
  async byHash(hash: string): Promise<CompiledWorkflow> {
    const known = this.#compiled.get(hash);
    if (known) return known;
    const record = await this.#deps.find(hash);
    if (!record)
      throw new PlatformError(
        'WORKFLOW_NOT_FOUND',
        `The definition ${hash}, with which this run was started, is no longer stored.`,
      );
    const body = JSON.parse(record.body);
    const workflow =
      pinnedCode(body, this.#deps.kindOf) ?? compileDefinition(body, this.#deps.kindOf, { isStored: true });
    // This version of svc might serialize the definition differently, so the hash stored with the run is the cache key.
    this.#compiled.set(hash, workflow);
    return workflow;
  }

  #remember(workflow: CompiledWorkflow): CompiledWorkflow {
    const known = this.#compiled.get(workflow.hash);
    if (known) return known;
    this.#compiled.set(workflow.hash, workflow);
    return workflow;
  }

  #compileFound({ definition, pluginId }: FoundDefinition): CompiledWorkflow {
    if (pluginId === undefined) return this.compile(definition);
    if (!isCodeWorkflow(definition as Record<string, unknown>)) {
      const workflow = this.compile(definition);
      refusePluginScripts(workflow, definition);
      return workflow;
    }
    return this.#remember(compileCode(definition as object, pluginId, this.#deps.kindOf));
  }

  #registerOne(found: FoundDefinition): void {
    const { source, locate } = found;
    try {
      const workflow = this.#compileFound(found);
      const { id } = workflow.definition;
      const other = this.#registered.get(id);
      if (other) {
        const message = `the workflow "${id}" is defined in ${other.source} already`;
        this.#faults.push(locate?.({ path: 'id', message }) ?? { source, path: 'id', message });
        return;
      }
      const toolProblem = this.#toolProblem(workflow);
      if (toolProblem !== undefined) {
        const issue = { path: 'mcp', message: toolProblem };
        this.#faults.push(locate?.(issue) ?? { source, ...issue });
        return;
      }
      this.#registered.set(id, { workflow, source });
      this.#reportUnresolved(found, unresolved(workflow, this.#deps.findPlugin ?? (() => 'anything')));
    } catch (error) {
      // All errors are caught. One faulty definition must not block other definitions or the start of the service.
      const issues =
        error instanceof PlatformError ? (error.details.issues as ReportedIssue[] | undefined) : undefined;
      for (const issue of issues ?? [{ path: '', message: messageOf(error) }])
        this.#faults.push(locate?.(issue) ?? { source, path: issue.path, message: issue.message });
    }
  }

  /** Reports handlers of ended runs whose workflow is not registered. It can be registered later. */
  #reportUnknownHandlers(found: readonly FoundDefinition[]): void {
    const known = [...this.#registered.keys(), ...(this.#deps.otherWorkflows ?? [])];
    for (const { one, workflow } of this.#registeredOf(found))
      this.#reportUnresolved(one, unknownHandlers(workflow, known));
  }

  /** Removes workflows with handlers that they may not have. The sources of all workflows are known by now. */
  #removeRefused(found: readonly FoundDefinition[]): void {
    const sourceOf = (id: string) => this.#registered.get(id)?.source;
    for (const { one, workflow } of this.#registeredOf(found)) {
      const { source, definition, handlerFault, locate } = one;
      if (!handlerFault) continue;
      const faults = endHandlerFaults(workflow, definition, (handler) => handlerFault(handler, sourceOf));
      this.#faults.push(...faults.map((issue) => locate?.(issue) ?? { source, ...issue }));
      if (faults.length > 0) this.#registered.delete(workflow.definition.id);
    }
  }

  #registeredOf(
    found: readonly FoundDefinition[],
  ): Array<{ one: FoundDefinition; workflow: CompiledWorkflow }> {
    return found.flatMap((one) => {
      const { id } = (one.definition ?? {}) as { id?: string };
      const registered = id === undefined ? undefined : this.#registered.get(id);
      return registered?.source === one.source ? [{ one, workflow: registered.workflow }] : [];
    });
  }

  #reportUnresolved({ source, definition, locate }: FoundDefinition, issues: DefinitionIssue[]): void {
    for (const { path, message } of issues) {
      const issue = { path: reportedPath(path, definition), message };
      this.#faults.push({ ...(locate?.(issue) ?? { source, ...issue }), unresolved: true });
    }
  }

  /** Returns what is wrong with the name under which agents see the workflow. */
  #toolProblem({ definition: { id, mcp } }: CompiledWorkflow): string | undefined {
    if (!mcp?.expose) return undefined;
    const name = workflowToolName(id, mcp);
    for (const { workflow } of this.#registered.values()) {
      const other = workflow.definition;
      if (other.mcp?.expose && workflowToolName(other.id, other.mcp) === name)
        return `the workflow "${other.id}" has the tool name "${name}" too: set mcp.name`;
    }
    return toolNameProblem(name);
  }

  #isLoaded(pluginId: string): boolean {
    return this.#deps.findPlugin?.(pluginId) !== undefined;
  }

  /** Stores the plugin ids of workflows that are no longer registered because their plugin was unloaded. */
  #noteAway(before: ReadonlyMap<string, RegisteredWorkflow>): void {
    for (const [id, pluginId] of this.#away)
      if (this.#registered.has(id) || this.#isLoaded(pluginId)) this.#away.delete(id);
    for (const [id, { source }] of before)
      if (!this.#registered.has(id) && !isFile(source) && !this.#isLoaded(source)) this.#away.set(id, source);
    for (const id of this.#away.keys()) {
      if (this.#away.size <= MAX_AWAY) break;
      this.#away.delete(id);
    }
  }
}

/**
 * Returns whether a source is a file with faults. Workflows of plugins are excluded, because plugin reloads replace
 * these workflows.
 */
function isBrokenFile(source: string, faults: readonly WorkflowFault[]): boolean {
  if (!isFile(source)) return false;
  return faults.some((fault) => fault.source === source || fault.source.startsWith(`${source}:`));
}

const isFile = (source: string): boolean => /\.(?:ya?ml|json)$/.test(source);

export function summaryOf({ workflow, source }: RegisteredWorkflow): WorkflowSummary {
  const { id, name, description, version, inputs, jobs, mcp } = workflow.definition;
  return {
    id,
    name: name ?? null,
    description: description ?? null,
    version,
    hash: workflow.hash,
    source,
    jobs: Object.keys(jobs),
    inputs: inputs ?? null,
    mcp: mcp ?? null,
  };
}
