import { resolve } from 'node:path';
import {
  CodeWorkflowDefinition,
  isCodeWorkflow,
  MANIFEST_FILE,
  type ManifestV3,
  PluginSchedule,
  WorkflowDefinition,
} from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { PluginDescriber } from './describe.ts';
import { checkHandlerFiles, handlerRefs, jsonSchemaRefs, zodRefs } from './registry/handler-files.ts';
import { faultsAgainst, readManifest } from './registry/manifest-file.ts';
import { manifestCodeOf } from './registry/manifest-module.ts';
import type { LoadedPlugin, PluginFault } from './registry/types.ts';
import { type GuardedPaths, grantFaults } from './sandbox/index.ts';

export interface ValidatedPlugin {
  /** The loaded plugin, or undefined if the manifest is invalid. */
  plugin?: LoadedPlugin;
  faults: PluginFault[];
}

type Awaitable<Value> = Value | Promise<Value>;

/**
 * Options of a plugin validation. Some options prevent plugin code from running without consent or without a sandbox.
 */
export interface ValidateOptions {
  /** Reason why the manifest module must not be run. If undefined, the module is run. */
  manifestNotRun?: string | undefined;
  /**
   * Reason why handlers and schemas must not be loaded. If set, the files of handlers and schemas are only analysed
   * statically.
   */
  handlersNotRun?: string | undefined;
  /** Paths to which the manifest must not request access. Relative paths in the manifest refer to `root`. */
  guarded?: (GuardedPaths & { root: string }) | undefined;
  /**
   * Callback that is called with the manifest before handlers are loaded. Can throw an error to cancel the validation.
   */
  agree?(manifest: ManifestV3): void;
  /** Compiles the manifest's workflows and schedules, and returns the errors. */
  compile?(manifest: ManifestV3): Awaitable<Array<{ path: string; message: string }>>;
}

/** Required handler kind for each list in the manifest. Plain functions have no kind and are always accepted. */
const KIND_OF = {
  commands: 'command',
  rest: 'route',
  webhooks: 'webhook',
  jobs: 'job',
  workflows: 'workflow',
} as const;

/**
 * Validates a plugin's manifest, the referenced files and their exports. Loads the files in the sandbox unless
 * `handlersNotRun` is set, but calls no handler. Returns all faults.
 */
export async function validatePlugin(
  folder: string,
  describer: PluginDescriber,
  { manifestNotRun, handlersNotRun, guarded, agree, compile = () => [] }: ValidateOptions = {},
): Promise<ValidatedPlugin> {
  const root = resolve(folder);
  const module = await manifestCodeOf(root);
  if (module !== undefined && manifestNotRun !== undefined) throw notRun(module, manifestNotRun);
  const { manifest, faults } = await readManifest(root, describer.manifest);
  if (!manifest) return { faults };
  agree?.(manifest);
  const plugin: LoadedPlugin = {
    id: manifest.id,
    version: manifest.version,
    root,
    manifest,
    ...(module === undefined ? {} : { manifestModule: module }),
  };
  const inText = await checkHandlerFiles(root, manifest);
  const reported = new Set(inText.map(({ path }) => path));
  const whenLoaded = handlersNotRun === undefined ? await codeFaults(plugin, describer) : [];
  const shapes = definitionFaults(manifest);
  const compiled = (await compile(manifest))
    .filter(({ path }) => !shapes.some((fault) => fault.path === path))
    .map(({ path, message }): PluginFault => ({ code: 'INVALID_MANIFEST', path, message }));
  return {
    plugin,
    faults: [
      ...(guarded ? await grantFaults(guarded.root, manifest, guarded) : []),
      ...shapes,
      ...compiled,
      ...inText,
      ...whenLoaded.filter(({ path }) => !reported.has(path)),
    ],
  };
}

function notRun(module: string, reason: string): PlatformError {
  return new PlatformError(
    'CONFLICT',
    `The manifest is code (${module}) and was not run: code without consent needs the bubblewrap sandbox, which is not active (${reason}). Install bubblewrap, use a release with a ${MANIFEST_FILE}, or pass --run-manifest (API: "runManifest": true) to run it under Node's permission model alone.`,
    { details: { reason: 'MANIFEST_IS_CODE', module } },
  );
}

/**
 * Returns the schema faults of workflows and schedules. Services do not reject a manifest because of these faults.
 * Services skip only the invalid workflow or schedule.
 */
function definitionFaults({ workflows, schedules }: ManifestV3): PluginFault[] {
  return [
    ...workflows.flatMap((written, index) => {
      const schema = isCodeWorkflow(written) ? CodeWorkflowDefinition : WorkflowDefinition;
      return faultsAgainst(schema, written, ['workflows', index]);
    }),
    ...schedules.flatMap((written, index) => faultsAgainst(PluginSchedule, written, ['schedules', index])),
  ];
}

/** Loads a plugin's code in the sandbox. Returns a fault for each mismatch between code and manifest. */
export async function codeFaults(plugin: LoadedPlugin, describer: PluginDescriber): Promise<PluginFault[]> {
  const { manifest } = plugin;
  const handlers = handlerRefs(manifest);
  const schemas = zodRefs(manifest);
  const references = jsonSchemaRefs(manifest);
  const asked = { id: plugin.id, version: plugin.version, root: plugin.root };
  const [described, printed, unusable] = await Promise.all([
    describer.handlers(
      asked,
      handlers.map(({ ref }) => ref),
    ),
    describer.schemas(
      asked,
      schemas.map(({ zod, io }) => ({ zod, io })),
    ),
    describer.references(
      asked,
      references.map(({ ref }) => ref),
    ),
  ]);
  return [
    ...handlers.flatMap(({ path }, index): PluginFault[] => {
      const found = described[index];
      if (!found || found.fault !== undefined) return [invalid(path, found?.fault ?? 'was not described')];
      const wanted = kindWanted(path);
      if (!wanted || found.kind === null || found.kind === wanted) return [];
      return [invalid(path, `is a ${found.kind} handler, but a ${wanted} handler is needed`)];
    }),
    ...schemas.flatMap(({ path }, index): PluginFault[] => {
      const fault = printed[index]?.fault;
      return fault === undefined ? [] : [invalid(path, fault)];
    }),
    ...references.flatMap(({ path }, index): PluginFault[] => {
      const fault = unusable[index];
      return fault ? [invalid(path, fault)] : [];
    }),
  ];
}

function kindWanted(path: string): string | undefined {
  if (path.endsWith('.validator')) return 'validator';
  if (path.endsWith('.onProvision')) return 'webhook';
  return KIND_OF[path.split(/[.[]/)[0] as keyof typeof KIND_OF];
}

function invalid(path: string, message: string): PluginFault {
  return { code: 'INVALID_HANDLER', path, message };
}
