import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import {
  eventSchemaRef,
  HandlerRef,
  type ManifestV3,
  type SchemaRef,
  type SchemaToDescribe,
} from '../../contracts/index.ts';
import { nearest } from '../../kit/data/nearest.ts';
import { isInside } from '../inside.ts';
import { formatPath, MAX_FAULTS } from './manifest-file.ts';
import { exportsInText } from './module-exports.ts';
import type { PluginFault } from './types.ts';

/** A reference in a manifest to a file of the plugin, such as `./jobs.ts#cleanUp`. */
interface FileRef {
  /** Path of the reference within the manifest, such as `commands[0].handler`. */
  path: string;
  ref: string;
  file: string;
  /** Name of the referenced export. Absent for a JSON Schema file. */
  name?: string;
}

/**
 * Checks that each file that a manifest names exists and contains the referenced exports. Skips the check of exports if
 * static analysis is incomplete. No plugin code runs. @spec Platform codes: INVALID_HANDLER
 */
export async function checkHandlerFiles(root: string, manifest: ManifestV3): Promise<PluginFault[]> {
  const files = new Map<string, CheckedFile>();
  const faults: PluginFault[] = [];
  // One bundle can contain a thousand handlers, so each file is read only once.
  for (const { path, ref, file, name } of fileRefs(manifest)) {
    const found = files.get(file) ?? (await checkFile(root, file));
    files.set(file, found);
    const message = found.fault ?? exportFault(found, file, name);
    if (message) faults.push({ code: 'INVALID_HANDLER', path, message: `"${ref}": ${message}` });
    if (faults.length === MAX_FAULTS) break;
  }
  return faults;
}

export interface NamedHandler {
  /** Path of the reference within the manifest, such as `commands[0].handler`. */
  path: string;
  ref: string;
}

export interface NamedSchema {
  /** Path of the schema reference within the manifest. */
  path: string;
  schema: SchemaRef;
  io: 'input' | 'output';
}

export function handlerRefs(manifest: ManifestV3): NamedHandler[] {
  const refs: NamedHandler[] = [];
  const add = (ref: string | undefined, ...path: PropertyKey[]) => {
    if (ref !== undefined) refs.push({ path: formatPath(path), ref });
  };
  for (const [index, { handler }] of manifest.commands.entries()) add(handler, 'commands', index, 'handler');
  for (const [index, { handler }] of (manifest.rest?.routes ?? []).entries())
    add(handler, 'rest', 'routes', index, 'handler');
  for (const [index, { handler, onProvision, auth }] of manifest.webhooks.entries()) {
    add(handler, 'webhooks', index, 'handler');
    add(onProvision, 'webhooks', index, 'onProvision');
    if (auth.type === 'custom') add(auth.validator, 'webhooks', index, 'auth', 'validator');
  }
  for (const [index, { handler }] of manifest.jobs.entries()) add(handler, 'jobs', index, 'handler');
  for (const [index, { handler }] of manifest.workflows.entries()) {
    if (HandlerRef.safeParse(handler).success) add(handler as string, 'workflows', index, 'handler');
  }
  add(manifest.lifecycle?.onEnable, 'lifecycle', 'onEnable');
  add(manifest.lifecycle?.onDisable, 'lifecycle', 'onDisable');
  return refs;
}

function schemaRefs(manifest: ManifestV3): NamedSchema[] {
  const refs: NamedSchema[] = [];
  const add = (schema: SchemaRef | undefined, ...path: PropertyKey[]) => {
    // Receivers get the data of events as it was emitted, which is the input of the schema.
    const io = path.at(-1) === 'output' ? 'output' : 'input';
    if (schema) refs.push({ path: formatPath(path), schema, io });
  };
  for (const [index, { input, output }] of manifest.commands.entries()) {
    add(input, 'commands', index, 'input');
    add(output, 'commands', index, 'output');
  }
  for (const [index, { input, output }] of (manifest.rest?.routes ?? []).entries()) {
    add(input, 'rest', 'routes', index, 'input');
    add(output, 'rest', 'routes', index, 'output');
  }
  for (const [index, { input }] of manifest.jobs.entries()) add(input, 'jobs', index, 'input');
  for (const [type, event] of Object.entries(manifest.events))
    add(eventSchemaRef(event), 'events', type, 'schema');
  return refs;
}

/** Returns the manifest's references to Zod schemas that plugin code exports. */
export function zodRefs(manifest: ManifestV3): Array<SchemaToDescribe & { path: string }> {
  return schemaRefs(manifest).flatMap(({ path, schema, io }) =>
    'zod' in schema ? [{ path, zod: schema.zod, io }] : [],
  );
}

export function jsonSchemaRefs(manifest: ManifestV3): Array<{ path: string; ref: string }> {
  return schemaRefs(manifest).flatMap(({ path, schema }) =>
    '$ref' in schema ? [{ path, ref: schema.$ref }] : [],
  );
}

function fileRefs(manifest: ManifestV3): FileRef[] {
  return [
    ...handlerRefs(manifest).map(({ path, ref }) => ({ path, ...splitRef(ref) })),
    ...schemaRefs(manifest).flatMap(({ path, schema }): FileRef[] => {
      if ('zod' in schema) return schema.zod.startsWith('.') ? [{ path, ...splitRef(schema.zod) }] : [];
      const file = schema.$ref.split('#')[0];
      return file ? [{ path, ref: file, file }] : [];
    }),
  ];
}

function splitRef(ref: string): Required<Omit<FileRef, 'path'>> {
  const at = ref.lastIndexOf('#');
  return { ref, file: ref.slice(0, at), name: ref.slice(at + 1) };
}

/** Error or exports of a checked file. `names` is undefined if static analysis cannot find all exports. */
interface CheckedFile {
  fault?: string;
  names?: ReadonlySet<string> | undefined;
}

async function checkFile(root: string, file: string): Promise<CheckedFile> {
  const asked = join(root, file);
  if (isAbsolute(file) || !isInside(root, asked)) return { fault: 'the file must lie inside the plugin' };
  const real = await realpath(asked).catch(() => undefined);
  if (real === undefined) return { fault: `there is no file ${file} in the plugin` };
  if (!isInside(root, real)) return { fault: `${file} is a symbolic link that leaves the plugin` };
  if (!(await stat(real)).isFile()) return { fault: `${file} is not a file` };
  const names = await exportsInText(real);
  return { names: names && new Set(names) };
}

function exportFault({ names }: CheckedFile, file: string, name: string | undefined): string | undefined {
  if (name === undefined || !names || names.has(name)) return undefined;
  const meant = nearest(name, names);
  return `${file} has no export "${name}"${meant ? `; did you mean "${meant}"?` : ''}`;
}
