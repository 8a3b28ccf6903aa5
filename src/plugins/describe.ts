import {
  type CheckedInput,
  DESCRIBE_HANDLERS,
  type DescribedHandler,
  type DescribedSchema,
  HandlerRef,
  type InputToCheck,
  Permissions,
  type SchemaToDescribe,
} from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';
import type { Random } from '../kit/random.ts';
import type { ExecutionBackend } from './execution.ts';
import type { EvaluateManifest } from './registry/manifest-module.ts';

/** What is described: a plugin's folder, whatever is known of it. */
export interface DescribedPlugin {
  id: string;
  version: string;
  root: string;
}

/** Asks plugin code about itself. It runs where handlers run, with no permission at all. */
export interface PluginDescriber {
  manifest: EvaluateManifest;
  /** Each as JSON Schema, or why it cannot be shown; in the order asked. */
  schemas(plugin: DescribedPlugin, refs: readonly SchemaToDescribe[]): Promise<DescribedSchema[]>;
  /** Why each JSON Schema that the manifest refers to cannot be used, null where it can; in the order asked. */
  references(plugin: DescribedPlugin, refs: readonly string[]): Promise<Array<string | null>>;
  /** What the manifest's `configSchema` finds wrong with the plugin's settings. */
  config(
    plugin: DescribedPlugin,
    schema: object,
    config: unknown,
  ): Promise<Array<{ path: string; message: string }>>;
  /** What each handler is, or why it cannot be one; in the order asked. */
  handlers(plugin: DescribedPlugin, refs: readonly string[]): Promise<DescribedHandler[]>;
  /**
   * What the schema that a handler brings along itself finds wrong with an input, or with the payload of a signal. For
   * the tenant whose value it is, so that its process sees no other's where tenants are kept apart.
   */
  input(plugin: DescribedPlugin, asked: InputToCheck, tenantId: string): Promise<CheckedInput>;
}

/** For importing the modules of a plugin, its dependencies included. */
const TIMEOUT_MS = 15_000;
/** For a manifest that is a module. With the check of settings that follows, half of what a service has to be ready in. */
const MANIFEST_MS = 10_000;
/** For a schema that has something to check: whoever started a run waits for it, or a service that reads its plugins. */
const CHECK_MS = 5000;
const NOTHING = Permissions.parse({});

export function createDescriber(backend: ExecutionBackend, random: Random): PluginDescriber {
  async function ask(
    plugin: DescribedPlugin,
    handler: string,
    input: unknown,
    { tenantId = 'default', timeoutMs = TIMEOUT_MS } = {},
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
      permissions: NOTHING,
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
    input: async (plugin, asked, tenantId) =>
      (await ask(plugin, DESCRIBE_HANDLERS.input, asked, { tenantId, timeoutMs: CHECK_MS })) as CheckedInput,
  };
}
