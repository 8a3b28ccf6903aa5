import { isCodeWorkflow, type WorkflowFault, type WorkflowSummary } from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/bounded-cache.ts';
import { messageOf, PlatformError } from '../../../../kit/errors.ts';
import { nearest } from '../../../../kit/nearest.ts';
import type { DefinitionRecord } from '../../../../store/ports/index.ts';
import { compileCode, pinnedCode } from './compile-code.ts';
import { compileDefinition } from './compile-definition.ts';
import type { CompiledWorkflow, KindOf } from './compiled-workflow.ts';
import type { ToldIssue } from './definition-faults.ts';
import { formatPath } from './templates.ts';
import { type FindPlugin, unresolved } from './unresolved.ts';

/** A definition as it was found. */
export interface FoundDefinition {
  /** The file, or the plugin. */
  source: string;
  definition: unknown;
  /** The plugin whose manifest it stands in: only there may a workflow be code. */
  pluginId?: string;
  /** The fault with its place in the file. */
  locate?(issue: ToldIssue): WorkflowFault;
}

export interface Definitions {
  /** Makes these the definitions that runs can be started of; faulty ones are told and left out. */
  register(found: readonly FoundDefinition[], faults?: readonly WorkflowFault[]): void;
  /** Tells what else could not be registered. */
  fault(fault: WorkflowFault): void;
  readonly registered: ReadonlyMap<string, RegisteredWorkflow>;
  readonly faults: readonly WorkflowFault[];
  /** Throws WORKFLOW_NOT_FOUND. */
  require(id: string): CompiledWorkflow;
  /** One that was sent along. Throws VALIDATION_ERROR. */
  compile(written: unknown): CompiledWorkflow;
  /** What a run is pinned to, from memory. */
  here(hash: string): CompiledWorkflow | undefined;
  /** The same, from the store if need be. */
  byHash(hash: string): Promise<CompiledWorkflow>;
}

export interface RegisteredWorkflow {
  workflow: CompiledWorkflow;
  source: string;
}

/** Workflows of plugins that are away. */
const MAX_AWAY = 10_000;
/** Characters of JSON. Whoever may start runs may send definitions along, and those of all tenants are in one memory. */
const MOST_CHARS = 1024 * 1024;
const REMEMBERED_CHARS = 4 * MOST_CHARS;

export function createDefinitions(deps: {
  kindOf: KindOf;
  find(hash: string): Promise<DefinitionRecord | undefined>;
  /** The plugins that definitions may name; default: any. */
  findPlugin?: FindPlugin;
}): Definitions {
  const registered = new Map<string, RegisteredWorkflow>();
  /** The plugin of each workflow whose plugin is not loaded any more, the latest to go last. */
  const away = new Map<string, string>();
  const faults: WorkflowFault[] = [];
  const byText = createBoundedCache<CompiledWorkflow>(REMEMBERED_CHARS, (text) => text.length);
  const compiled = createBoundedCache<CompiledWorkflow>(REMEMBERED_CHARS, (_, { body }) => body.length);

  function compile(written: unknown): CompiledWorkflow {
    // Whoever sends definitions along sends the same ones again and again.
    const text = JSON.stringify(written);
    const same = byText.get(text);
    if (same) return same;
    if (text.length > MOST_CHARS)
      throw new PlatformError(
        'PAYLOAD_TOO_LARGE',
        `The definition takes ${text.length} characters as JSON; a definition may take ${MOST_CHARS}. Hand large data on as input, or keep it elsewhere.`,
      );
    const workflow = remember(compileDefinition(written, deps.kindOf));
    byText.set(text, workflow);
    return workflow;
  }

  function remember(workflow: CompiledWorkflow): CompiledWorkflow {
    const known = compiled.get(workflow.hash);
    if (known) return known;
    compiled.set(workflow.hash, workflow);
    return workflow;
  }

  function compileFound({ definition, pluginId }: FoundDefinition): CompiledWorkflow {
    if (pluginId === undefined || !isCodeWorkflow(definition as Record<string, unknown>))
      return compile(definition);
    return remember(compileCode(definition as object, pluginId, deps.kindOf));
  }

  function registerOne(found: FoundDefinition): void {
    const { source, locate } = found;
    try {
      const workflow = compileFound(found);
      const { id } = workflow.definition;
      const other = registered.get(id);
      if (other) {
        const message = `the workflow "${id}" is defined in ${other.source} already`;
        faults.push(locate?.({ path: 'id', message }) ?? { source, path: 'id', message });
        return;
      }
      registered.set(id, { workflow, source });
      for (const { path, message } of unresolved(workflow, deps.findPlugin ?? (() => 'anything'))) {
        const issue = { path: formatPath(path), message };
        faults.push({ ...(locate?.(issue) ?? { source, ...issue }), unresolved: true });
      }
    } catch (error) {
      // Whatever it is: one definition keeps neither the others nor the service from starting.
      const issues =
        error instanceof PlatformError ? (error.details.issues as ToldIssue[] | undefined) : undefined;
      for (const issue of issues ?? [{ path: '', message: messageOf(error) }])
        faults.push(locate?.(issue) ?? { source, path: issue.path, message: issue.message });
    }
  }

  const isLoaded = (pluginId: string): boolean => deps.findPlugin?.(pluginId) !== undefined;

  /** Keeps which plugins the workflows were of that went with theirs. */
  function noteAway(before: ReadonlyMap<string, RegisteredWorkflow>): void {
    for (const [id, pluginId] of away) if (registered.has(id) || isLoaded(pluginId)) away.delete(id);
    for (const [id, { source }] of before)
      if (!registered.has(id) && !isFile(source) && !isLoaded(source)) away.set(id, source);
    for (const id of away.keys()) {
      if (away.size <= MAX_AWAY) break;
      away.delete(id);
    }
  }

  return {
    registered,
    faults,
    register(found, other = []) {
      const before = new Map(registered);
      registered.clear();
      faults.splice(0, faults.length, ...other);
      for (const one of found) registerOne(one);
      noteAway(before);
      const sources = new Set(Array.from(registered.values(), ({ source }) => source));
      // A file with a broken edit: its faults are told, and runs can still be started of what it held last.
      for (const [id, kept] of before)
        if (!registered.has(id) && !sources.has(kept.source) && isBrokenFile(kept.source, faults))
          registered.set(id, kept);
    },
    fault: (fault) => faults.push(fault),
    require(id) {
      const found = registered.get(id);
      if (found) return found.workflow;
      const pluginId = away.get(id);
      if (pluginId !== undefined && !isLoaded(pluginId))
        throw new PlatformError(
          'WORKFLOW_NOT_FOUND',
          `The workflow "${id}" is of plugin ${pluginId}, which is not loaded; \`svc plugins list\` shows its state.`,
          { details: { workflowId: id, pluginId, reason: 'not_loaded' } },
        );
      const near = nearest(id, [...registered.keys()]);
      throw new PlatformError(
        'WORKFLOW_NOT_FOUND',
        `There is no workflow "${id}"${near ? `; did you mean "${near}"?` : '; `svc workflows list` shows those there are.'}`,
        { details: { workflowId: id } },
      );
    },
    compile,
    here: (hash) => compiled.get(hash),
    async byHash(hash) {
      const known = compiled.get(hash);
      if (known) return known;
      const record = await deps.find(hash);
      if (!record)
        throw new PlatformError(
          'WORKFLOW_NOT_FOUND',
          `The definition ${hash} that this run was started with is not stored any more.`,
        );
      const body = JSON.parse(record.body);
      const workflow =
        pinnedCode(body, deps.kindOf) ?? compileDefinition(body, deps.kindOf, { isStored: true });
      // Under the hash that the run knows, should a later version of svc print the same definition otherwise.
      compiled.set(hash, workflow);
      return workflow;
    },
  };
}

/** Whether a source is a file with faults; a plugin's workflows go with the version of the plugin. */
function isBrokenFile(source: string, faults: readonly WorkflowFault[]): boolean {
  if (!isFile(source)) return false;
  return faults.some((fault) => fault.source === source || fault.source.startsWith(`${source}:`));
}

const isFile = (source: string): boolean => /\.(?:ya?ml|json)$/.test(source);

export function summaryOf({ workflow, source }: RegisteredWorkflow): WorkflowSummary {
  const { id, name, description, version, inputs, jobs } = workflow.definition;
  return {
    id,
    name: name ?? null,
    description: description ?? null,
    version,
    hash: workflow.hash,
    source,
    jobs: Object.keys(jobs),
    inputs: inputs ?? null,
  };
}
