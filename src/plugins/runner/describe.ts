import type { StandardSchema } from '../../contracts/index.ts';
import {
  type CheckedInput,
  DESCRIBE_HANDLERS,
  type DescribedHandler,
  type DescribedSchema,
  type InputToCheck,
  type SchemaToDescribe,
} from '../../contracts/plugin-description.ts';
import { compileJsonCheck, type JsonCheck, type SchemaFault } from '../../kit/schemas/json-check.ts';
import { messageOf, RunnerFailure } from './failure.ts';
import { type Handler, importModule, loadHandler, resolveInside, signalSchema } from './handler.ts';
import { resolvedModules } from './module-hooks.ts';
import { checkWith, importedStandardSchema, referenceFault } from './schemas.ts';
import { loadPlaceOf, placeText } from './source-place.ts';

/**
 * Returns the built-in handler `ref`. The handler loads plugin code in the runner and returns metadata, because
 * services never load plugin code into their own processes.
 */
export function describeHandler(root: string, ref: string): Handler | undefined {
  const execute = DESCRIBERS[ref];
  if (!execute) return undefined;
  return {
    ref,
    kind: null,
    method: null,
    input: null,
    output: null,
    execute: (_ctx, input) => execute(root, input),
  };
}

const DESCRIBERS: Record<string, (root: string, input: unknown) => Promise<unknown>> = {
  [DESCRIBE_HANDLERS.manifest]: (root, input) => describeManifest(root, (input as { module: string }).module),
  [DESCRIBE_HANDLERS.schemas]: (root, input) =>
    Promise.all((input as { refs: SchemaToDescribe[] }).refs.map((ref) => describeSchema(root, ref))),
  [DESCRIBE_HANDLERS.references]: (root, input) =>
    Promise.all(
      (input as { refs: string[] }).refs.map(async (ref) => (await referenceFault(root, ref)) ?? null),
    ),
  [DESCRIBE_HANDLERS.handlers]: (root, input) =>
    Promise.all((input as { refs: string[] }).refs.map((ref) => describeDefinition(root, ref))),
  [DESCRIBE_HANDLERS.config]: (_root, input) => {
    const { schema, config } = input as { schema: object; config: unknown };
    return checkAgainst(schema, config);
  },
  // The runner lists the tools, because the server needs the services of an execution.
  [DESCRIBE_HANDLERS.mcpTools]: async () => [],
  [DESCRIBE_HANDLERS.input]: (root, input) => checkOwnInput(root, input as InputToCheck),
};

const MAX_COMPILED = 200;
/** Checks by the text of their schema, because events are checked by the same few schemas. */
const compiled = new Map<string, Promise<JsonCheck>>();

async function checkAgainst(schema: object, value: unknown): Promise<SchemaFault[]> {
  const text = JSON.stringify(schema);
  const check = compiled.get(text) ?? compileJsonCheck(schema);
  if (compiled.size >= MAX_COMPILED) compiled.clear();
  compiled.set(text, check);
  return (await check)(value);
}

async function describeManifest(root: string, module: string): Promise<unknown> {
  const exports = await importModule(root, resolveInside(root, module, module), module);
  if (typeof exports.default === 'object' && exports.default !== null) return exports.default;
  throw new RunnerFailure('INVALID_MANIFEST', `${module} must export the manifest as its default export.`);
}

async function describeSchema(root: string, { zod, io }: SchemaToDescribe): Promise<DescribedSchema> {
  try {
    return { schema: print(await importedStandardSchema(root, zod), io) };
  } catch (error) {
    // Only plugin descriptions include the source position, because callers of a route must not receive source
    // positions.
    const { cause } = error as Error;
    const place = cause === undefined ? undefined : loadPlaceOf(cause, root, resolvedModules);
    return { fault: `${messageOf(error)}${place ? ` (${placeText(place)})\n    | ${place.text}` : ''}` };
  }
}

async function describeDefinition(root: string, ref: string): Promise<DescribedHandler> {
  try {
    const { kind, method, input, output } = await loadHandler(root, ref);
    return { kind, method, input: printed(input, 'input'), output: printed(output, 'output') };
  } catch (error) {
    return { fault: messageOf(error) };
  }
}

async function checkOwnInput(root: string, { ref, input, signal }: InputToCheck): Promise<CheckedInput> {
  const handler = await loadHandler(root, ref);
  const signals = Object.keys(handler.workflow?.signals ?? {});
  const schema = signal === undefined ? handler.input : signalSchema(handler.workflow, signal);
  if (!schema) return { issues: null, signals };
  const outcome = await checkWith(schema, input);
  return { issues: outcome.ok ? [] : outcome.issues, signals };
}

type Io = 'input' | 'output';

/**
 * Converts a schema to JSON Schema. Returns null if the schema is missing or cannot be converted. A schema that cannot
 * be converted still validates values.
 */
function printed(schema: StandardSchema | null, io: Io): Record<string, unknown> | null {
  if (!schema) return null;
  try {
    return print(schema, io);
  } catch {
    return null;
  }
}

/**
 * Converts a schema with the schema's own library, because the plugin's version of zod can differ from the platform's
 * version.
 */
function print(schema: StandardSchema, io: Io): Record<string, unknown> {
  const { toJSONSchema } = schema as { toJSONSchema?: (options: object) => Record<string, unknown> };
  if (typeof toJSONSchema === 'function') return toJSONSchema.call(schema, { io, unrepresentable: 'any' });
  const standard = schema['~standard'] as {
    vendor?: unknown;
    jsonSchema?: Record<Io, (options: object) => Record<string, unknown>>;
  };
  if (standard.jsonSchema) return standard.jsonSchema[io]({ target: 'draft-2020-12' });
  throw new Error(`a schema of ${String(standard.vendor)} that cannot print itself as JSON Schema`);
}
