import {
  type CheckedInput,
  DESCRIBE_HANDLERS,
  type DescribedHandler,
  type DescribedSchema,
  HandlerRef,
  type InputToCheck,
  type ListedMcpTool,
  Permissions,
  type SchemaToDescribe,
} from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { Random } from '../kit/security/random.ts';
import type { ExecutionBackend } from './execution.ts';
import type { EvaluateManifest } from './registry/manifest-module.ts';

/** A plugin whose code is evaluated for metadata. The plugin does not have to be in the registry. */
export interface DescribedPlugin {
  id: string;
  version: string;
  root: string;
}

/** Evaluates plugin code for its metadata, in the same sandbox as handlers but without any permission. */
export interface PluginDescriber {
  manifest: EvaluateManifest;
  /**
   * Returns each schema as JSON Schema, in request order. For a schema that cannot be converted, returns the reason.
   */
  schemas(plugin: DescribedPlugin, refs: readonly SchemaToDescribe[]): Promise<DescribedSchema[]>;
  /** Returns null for each usable JSON Schema, in request order. For an unusable schema, returns the reason. */
  references(plugin: DescribedPlugin, refs: readonly string[]): Promise<Array<string | null>>;
  /** Validates a plugin's settings against the `configSchema` of its manifest and returns the errors. */
  config(
    plugin: DescribedPlugin,
    schema: object,
    config: unknown,
  ): Promise<Array<{ path: string; message: string }>>;
  /** Returns, in request order, the kind of each handler or the reason why the handler is invalid. */
  handlers(plugin: DescribedPlugin, refs: readonly string[]): Promise<DescribedHandler[]>;
  /** Starts the plugin's MCP server with these permissions, and lists its tools. */
  mcpTools(plugin: DescribedPlugin, permissions: Permissions, tenantId: string): Promise<ListedMcpTool[]>;
  /**
   * Validates an input or a signal payload against the handler's schema. `tenantId` selects the process, because
   * tenants can have separate processes.
   */
  input(plugin: DescribedPlugin, asked: InputToCheck, tenantId: string): Promise<CheckedInput>;
}

/** Time limit for importing a plugin's modules and their dependencies. */
const TIMEOUT_MS = 15_000;
/** Time limit for evaluating a manifest module. Service startup waits for the evaluation. */
const MANIFEST_MS = 10_000;
/** Time limit for validating a value. Run starts and service startup wait for the validation. */
const CHECK_MS = 5000;
/** Time limit for starting an MCP server and listing its tools. */
const MCP_MS = 45_000;
const NOTHING = Permissions.parse({});

export function createDescriber(backend: ExecutionBackend, random: Random): PluginDescriber {
  async function ask(
    plugin: DescribedPlugin,
    handler: string,
    input: unknown,
    { tenantId = 'default', timeoutMs = TIMEOUT_MS, permissions = NOTHING } = {},
  ): Promise<unknown> {
    const id = random.uuid();
    const { exitCode, result, error } = await backend.run({
      executionId: id,
      plugin,
      handler: HandlerRef.parse(handler),
      host: 'cli',
      hostContext: {},
      input,
      params: {},
      user: null,
      tenantId,
      requestId: id,
      traceId: id,
      config: {},
      permissions,
      schemas: {},
      timeoutMs,
    });
    if (exitCode === 0) return result;
    throw new PlatformError('INVALID_HANDLER', error?.message ?? `Exit code ${exitCode}`);
  }
  return {
    manifest: (folder, module) =>
      ask(
        { id: 'manifest', version: '0.0.0', root: folder },
        DESCRIBE_HANDLERS.manifest,
        { module },
        { timeoutMs: MANIFEST_MS },
      ),
    schemas: async (plugin, refs) =>
      refs.length === 0
        ? []
        : ((await ask(plugin, DESCRIBE_HANDLERS.schemas, { refs })) as DescribedSchema[]),
    references: async (plugin, refs) =>
      refs.length === 0
        ? []
        : ((await ask(plugin, DESCRIBE_HANDLERS.references, { refs })) as Array<string | null>),
    config: async (plugin, schema, config) =>
      (await ask(plugin, DESCRIBE_HANDLERS.config, { schema, config }, { timeoutMs: CHECK_MS })) as Array<{
        path: string;
        message: string;
      }>,
    handlers: async (plugin, refs) =>
      refs.length === 0
        ? []
        : ((await ask(plugin, DESCRIBE_HANDLERS.handlers, { refs })) as DescribedHandler[]),
    mcpTools: async (plugin, permissions, tenantId) =>
      (await ask(
        plugin,
        DESCRIBE_HANDLERS.mcpTools,
        {},
        {
          tenantId,
          permissions,
          timeoutMs: MCP_MS,
        },
      )) as ListedMcpTool[],
    input: async (plugin, asked, tenantId) =>
      (await ask(plugin, DESCRIBE_HANDLERS.input, asked, { tenantId, timeoutMs: CHECK_MS })) as CheckedInput,
  };
}
