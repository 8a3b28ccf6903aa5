import { existsSync, realpathSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type HandlerDefinition,
  HOSTS_OF_KIND,
  type PluginContextV3,
  type StandardSchema,
} from '../../contracts/plugin-context.ts';
import type { StepOptions, WorkflowContext } from '../../contracts/workflow-context.ts';
import { isInside } from '../inside.ts';
import { messageOf, RunnerFailure } from './failure.ts';
import { isModuleFile, resolvedModules } from './module-hooks.ts';
import type { RunnerRequest } from './protocol.ts';
import { loadPlaceOf, placeText } from './source-place.ts';

export interface Handler {
  ref: string;
  kind: HandlerDefinition['kind'] | null;
  method: string | null;
  input: StandardSchema | null;
  output: StandardSchema | null;
  /** Workflow's id, default options of its steps and signal schemas. Absent for other handlers. */
  workflow?: WorkflowParts;
  /** Tool of the plugin's MCP server that the runner calls instead of `execute`. */
  mcpTool?: string;
  execute(ctx: PluginContextV3 | WorkflowContext, input: unknown): unknown;
}

export interface WorkflowParts {
  id: unknown;
  steps: StepOptions;
  /** Payload schemas, keyed by signal name. */
  signals: Record<string, StandardSchema>;
}

export function signalSchema(workflow: WorkflowParts | undefined, name: string): StandardSchema | null {
  const signals = workflow?.signals ?? {};
  return Object.hasOwn(signals, name) ? signals[name]! : null;
}

/**
 * Returns the path of a file inside the plugin's folder. Throws if the path or a symbolic link leads outside the
 * folder.
 */
export function resolveInside(root: string, file: string, ref: string): string {
  const path = join(root, file);
  const leadsOut = () =>
    new RunnerFailure('INVALID_HANDLER', `"${ref}" is outside of the plugin's folder.`, { ref });
  // This check gives a more helpful message than the sandbox, which also rejects such paths.
  if (isAbsolute(file) || !isInside(root, path)) throw leadsOut();
  if (!isModuleFile(path)) {
    throw new RunnerFailure('INVALID_HANDLER', `"${ref}": there is no file ${file} in the plugin.`, {
      ref,
      reason: 'not_loaded',
    });
  }
  const real = existsSync(path) ? realpathSync(path) : path;
  if (!isInside(root, real)) throw leadsOut();
  return real;
}

type ExportedDefinition = Partial<Omit<HandlerDefinition, 'execute'> & Pick<Handler, 'execute'>>;

/**
 * Loads the handler `<file>#<export>`. Throws INVALID_HANDLER if the export is neither a function nor an object with an
 * `execute` function. @spec Plugin REST route declaration
 */
export async function loadHandler(root: string, ref: string): Promise<Handler> {
  const [file, name] = splitRef(ref);
  const path = resolveInside(root, file, ref);
  const found = findExport(await importModule(root, path, ref), name);
  if (typeof found === 'function') {
    return { ref, kind: null, method: null, input: null, output: null, execute: found as Handler['execute'] };
  }
  const definition = found as ExportedDefinition | null | undefined;
  if (typeof definition !== 'object' || typeof definition?.execute !== 'function') {
    throw new RunnerFailure(
      'INVALID_HANDLER',
      `"${ref}": ${file} has no export "${name}" that is a function or has an "execute" function.`,
      { ref },
    );
  }
  const { kind, method, input, output } = definition;
  const { mcpTool } = definition as { mcpTool?: unknown };
  return {
    ref,
    kind: kind && Object.hasOwn(HOSTS_OF_KIND, kind) ? kind : null,
    method: typeof method === 'string' ? method : null,
    input: input ?? null,
    output: output ?? null,
    ...(kind === 'workflow' ? { workflow: partsOf(definition) } : {}),
    ...(typeof mcpTool === 'string' ? { mcpTool } : {}),
    execute: (ctx, value) => definition.execute!(ctx, value),
  };
}

function partsOf(definition: object): WorkflowParts {
  const { id, steps = {}, signals = {} } = definition as Partial<WorkflowParts>;
  return { id, steps, signals };
}

export function splitRef(ref: string): [file: string, name: string] {
  const at = ref.lastIndexOf('#');
  return [ref.slice(0, at), ref.slice(at + 1)];
}

/**
 * Imports a file of the plugin. Throws EXECUTION_ERROR with the original message if the file's code throws an error.
 */
export async function importModule(
  root: string,
  path: string,
  ref: string,
): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code === 'ERR_ACCESS_DENIED') throw error;
    const { text, at } = loadFailure(error, root, pathToFileURL(path).href);
    throw new RunnerFailure(
      'EXECUTION_ERROR',
      `"${ref}" could not be loaded: ${text}`,
      { ref, reason: 'not_loaded', ...at },
      error,
    );
  }
}

/**
 * Returns the message of an error from loading a module. Includes the source position and the source line, if known.
 * A syntax error is searched first in `imported`, because other modules can be loading at the same time.
 */
export function loadFailure(
  error: unknown,
  root: string,
  imported?: string,
): { text: string; at: { at?: string } } {
  const resolved = imported === undefined ? resolvedModules : [...resolvedModules, imported];
  const place = loadPlaceOf(error, root, resolved);
  if (!place) return { text: messageOf(error), at: {} };
  const at = placeText(place);
  return { text: `${at}: ${messageOf(error)}\n    | ${place.text}`, at: { at } };
}

/**
 * Returns an export by name. Falls back to the properties of `default`, because Node does not detect all exports of
 * CommonJS modules.
 */
export function findExport(module: Record<string, unknown>, name: string): unknown {
  if (name in module) return module[name];
  const fallback = module.default as Record<string, unknown> | null | undefined;
  return typeof fallback === 'object' && fallback !== null && Object.hasOwn(fallback, name)
    ? fallback[name]
    : undefined;
}

/** Throws HOST_MISMATCH if the handler was defined for another host kind or HTTP method. @spec Plugin routes 7 */
export function requireHost(handler: Handler, request: RunnerRequest): void {
  if (handler.kind) {
    const hosts = HOSTS_OF_KIND[handler.kind];
    if (!hosts.includes(request.host)) {
      throw new RunnerFailure(
        'HOST_MISMATCH',
        `"${handler.ref}" is a ${handler.kind} handler: it runs under the host ${hosts.join(' or ')}, but was called under ${request.host}.`,
        { expected: hosts, received: request.host },
      );
    }
  }
  const received = request.hostContext.method;
  if (handler.method && request.host === 'rest' && received !== handler.method) {
    throw new RunnerFailure(
      'HOST_MISMATCH',
      `"${handler.ref}" expects the method ${handler.method}, but received ${String(received)}.`,
      { expected: handler.method, received },
    );
  }
}
