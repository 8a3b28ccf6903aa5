import { existsSync, readFileSync } from 'node:fs';
import { isAbsolute, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { z } from 'zod';
import type { SchemaRef, StandardResult, StandardSchema } from '../../contracts/index.ts';
import { problemsOf } from '../../kit/data/schema-problems.ts';
import { ajvFaults, type SchemaFault } from '../../kit/schemas/json-check.ts';
import { messageOf, RunnerFailure } from './failure.ts';
import { findExport, type Handler, resolveInside, splitRef } from './handler.ts';
import { pluginSpecifier } from './module-hooks.ts';
import type { RunnerRequest } from './protocol.ts';

type Outcome = { ok: true; value: unknown } | { ok: false; issues: SchemaFault[] };
/** Validates a value. With `coerce`, converts strings from the URL query to numbers and booleans. */
type Check = (value: unknown, coerce: boolean) => Promise<Outcome>;

export interface SchemaChecks {
  /**
   * Validates a handler's input and returns the transformed input. Throws VALIDATION_ERROR with `details.issues` if the
   * input is invalid. @spec Plugin routes 2
   */
  input(handler: Handler, request: RunnerRequest): Promise<unknown>;
  /** Validates a handler's result. Throws EXECUTION_ERROR with `details.outputIssues` if the result is invalid. */
  output(handler: Handler, request: RunnerRequest, result: unknown): Promise<unknown>;
}

/**
 * Creates the functions that validate inputs and results. A schema is `{zod: "<package>#<export>"}`, `{$ref:
 * "<file>#<pointer>"}` or part of the handler's definition.
 */
export function createSchemaChecks(root: string): SchemaChecks {
  const cache = new Map<string, Promise<Check>>();

  function load(ref: SchemaRef): Promise<Check> {
    const key = JSON.stringify(ref);
    let check = cache.get(key);
    if (!check) {
      check = 'zod' in ref ? importedSchema(root, ref.zod) : jsonSchema(root, ref.$ref);
      check.catch(() => cache.delete(key));
      cache.set(key, check);
    }
    return check;
  }
  return {
    async input(handler, request) {
      const check = await pick(load, request.schemas.input, handler.input);
      if (!check) return request.input;
      const outcome = await check(request.input, isQuery(request));
      if (outcome.ok) return outcome.value;
      throw new RunnerFailure('VALIDATION_ERROR', `The input is not valid: ${summary(outcome.issues)}`, {
        issues: outcome.issues,
      });
    },
    async output(handler, request, result) {
      const check = await pick(load, request.schemas.output, handler.output);
      if (!check) return result;
      const outcome = await check(result, false);
      if (outcome.ok) return outcome.value;
      throw new RunnerFailure(
        'EXECUTION_ERROR',
        `The handler's result does not fit its declared output: ${summary(outcome.issues)}`,
        { outputIssues: outcome.issues },
      );
    },
  };
}

/**
 * Returns the validator for a handler's input or result. A schema in the manifest takes precedence over a schema in the
 * code.
 */
async function pick(
  load: (ref: SchemaRef) => Promise<Check>,
  ref: SchemaRef | undefined,
  own: StandardSchema | null,
): Promise<Check | null> {
  if (ref) return load(ref);
  return own ? standardCheck(own) : null;
}

function isQuery({ host, hostContext }: RunnerRequest): boolean {
  return host === 'rest' && (hostContext.method === 'GET' || hostContext.method === 'DELETE');
}

function summary(issues: SchemaFault[]): string {
  return issues
    .slice(0, 3)
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
    .join('; ');
}

async function importedSchema(root: string, ref: string): Promise<Check> {
  return standardCheck(await importedStandardSchema(root, ref));
}

/**
 * Imports the schema `<package>#<export>` from the plugin's folder. Throws INVALID_HANDLER if the export is not a
 * schema.
 */
export async function importedStandardSchema(root: string, ref: string): Promise<StandardSchema> {
  const [from, name] = splitRef(ref);
  const file = from.startsWith('.') ? from : ownMain(root, from);
  const specifier =
    file === undefined ? pluginSpecifier(from) : pathToFileURL(resolveInside(root, file, ref)).href;
  const schema = findExport(await importFor(ref, specifier), name) as StandardSchema | undefined;
  if (typeof schema?.['~standard']?.validate !== 'function') {
    throw new RunnerFailure('INVALID_HANDLER', `"${ref}" is not a zod schema: ${from} has no such export.`, {
      ref,
    });
  }
  return schema;
}

/**
 * Returns the main file of the plugin's own package if the package has the name `packageName` and no `exports`. Node
 * resolves a package's own name only if the package has `exports`.
 */
function ownMain(root: string, packageName: string): string | undefined {
  const path = join(root, 'package.json');
  if (!existsSync(path)) return undefined;
  const own = packageAt(path);
  return own.name === packageName && own.exports === undefined ? (own.main ?? 'index.js') : undefined;
}

function packageAt(path: string): { name?: string; main?: string; exports?: unknown } {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    // The later import of the schema reports an unreadable `package.json` with more detail.
    return {};
  }
}

async function importFor(ref: string, specifier: string): Promise<Record<string, unknown>> {
  try {
    return (await import(specifier)) as Record<string, unknown>;
  } catch (error) {
    throw new RunnerFailure(
      'INVALID_HANDLER',
      `The schema "${ref}" could not be loaded: ${messageOf(error)}`,
      { ref, reason: 'not_loaded' },
      error,
    );
  }
}

function standardCheck(schema: StandardSchema): Check {
  return async (value) => {
    const outcome = await checkWith(schema, value);
    if (outcome.ok) return outcome;
    return { ok: false, issues: outcome.issues.map((issue) => ({ ...issue, path: issue.path.join('.') })) };
  };
}

type Found =
  | { ok: true; value: unknown }
  | { ok: false; issues: Array<{ path: Array<string | number>; message: string }> };

/** Validates a value against a Standard Schema, such as a zod schema. Returns at most a hundred issues. */
export async function checkWith(schema: StandardSchema, value: unknown): Promise<Found> {
  const result: StandardResult<unknown> = await schema['~standard'].validate(value);
  if (!result.issues) return { ok: true, value: result.value };
  const key = (part: PropertyKey): string | number => (typeof part === 'number' ? part : String(part));
  return {
    ok: false,
    issues: result.issues.slice(0, 100).flatMap((issue) => {
      const path = (issue.path ?? []).map((part) => key(typeof part === 'object' ? part.key : part));
      return isZodIssue(issue)
        ? problemsOf([{ ...issue, path }], value).map((problem) => ({
            message: problem.message,
            path: problem.path.map(key),
          }))
        : [{ message: issue.message, path }];
    }),
  };
}

/** Returns whether zod created the issue. Issues of zod contain more detail than the standard message. */
function isZodIssue(issue: object): issue is z.core.$ZodIssue {
  return 'code' in issue && typeof issue.code === 'string';
}

/**
 * Compiles a JSON Schema. ajv is loaded on first use. `format` is not validated, which is the default in JSON Schema
 * 2020-12.
 */
async function jsonSchema(root: string, ref: string): Promise<Check> {
  const { Ajv2020 } = await import('ajv/dist/2020.js');
  const base = new URL(`${pathToFileURL(root).href}/`);
  const compile = (coerceTypes: boolean) => {
    const ajv = new Ajv2020({
      strict: false,
      allErrors: true,
      validateFormats: false,
      coerceTypes: coerceTypes ? 'array' : false,
      loadSchema: async (uri) => readSchemaFile(root, uri, ref),
    });
    return ajv.compileAsync({ $ref: new URL(ref, base).href });
  };
  const compiled = new Map<boolean, ReturnType<typeof compile>>();
  return async (value, coerce) => {
    const validate = compiled.get(coerce) ?? compile(coerce).catch((error) => refuse(ref, base, error));
    compiled.set(coerce, validate);
    const check = await validate;
    if (check(value)) return { ok: true, value };
    return {
      ok: false,
      issues: ajvFaults(check.errors),
    };
  };
}

/** Returns the reason why a JSON Schema from the manifest is unusable. Returns undefined for a usable schema. */
export async function referenceFault(root: string, ref: string): Promise<string | undefined> {
  try {
    const check = await jsonSchema(root, ref);
    await check(undefined, false);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Throws INVALID_HANDLER for an unusable schema. Removes the plugin's absolute path from the message, because callers
 * must not receive this path.
 */
function refuse(ref: string, base: URL, error: unknown): never {
  if (error instanceof RunnerFailure) throw error;
  const why = messageOf(error).replaceAll(base.href, '');
  throw new RunnerFailure('INVALID_HANDLER', `The schema "${ref}" cannot be used: ${why}`, { ref }, error);
}

function readSchemaFile(root: string, uri: string, ref: string): Record<string, unknown> {
  if (!uri.startsWith('file:')) {
    throw new RunnerFailure(
      'INVALID_HANDLER',
      `The schema "${ref}" refers to ${uri}; only files of the plugin may be referenced.`,
    );
  }
  const file = relative(root, fileURLToPath(uri));
  if (isAbsolute(file))
    throw new RunnerFailure('INVALID_HANDLER', `The schema "${ref}" refers to a file outside of the plugin.`);
  try {
    return JSON.parse(readFileSync(resolveInside(root, file, ref), 'utf8'));
  } catch (error) {
    if (error instanceof RunnerFailure) throw error;
    throw new RunnerFailure(
      'INVALID_HANDLER',
      `The schema file ${file} could not be read: ${messageOf(error)}`,
    );
  }
}
