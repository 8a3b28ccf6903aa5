import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { ManifestV3, SchemaRef } from '../../contracts/index.ts';
import { isInside } from '../inside.ts';
import { formatPath } from './manifest-file.ts';
import type { PluginFault } from './types.ts';

/** A file that a manifest names, and where it does. */
interface FileRef {
  path: string;
  ref: string;
  file: string;
}

/** Checks that every file the manifest names exists inside the plugin's folder; what they export is seen when they run. */
export async function checkHandlerFiles(root: string, manifest: ManifestV3): Promise<PluginFault[]> {
  const faults = await Promise.all(fileRefs(manifest).map((ref) => checkFile(root, ref)));
  return faults.filter((fault) => fault !== undefined);
}

function fileRefs(manifest: ManifestV3): FileRef[] {
  const refs: FileRef[] = [];
  const handler = (ref: string | undefined, ...path: PropertyKey[]) => {
    if (ref !== undefined)
      refs.push({ path: formatPath(path), ref, file: ref.slice(0, ref.lastIndexOf('#')) });
  };
  const schema = (ref: SchemaRef | undefined, ...path: PropertyKey[]) => {
    const file = ref && schemaFile(ref);
    if (file) refs.push({ path: formatPath(path), ref: file, file });
  };
  for (const [index, { handler: ref, input, output }] of manifest.commands.entries()) {
    handler(ref, 'commands', index, 'handler');
    schema(input, 'commands', index, 'input');
    schema(output, 'commands', index, 'output');
  }
  for (const [index, { handler: ref, input, output }] of (manifest.rest?.routes ?? []).entries()) {
    handler(ref, 'rest', 'routes', index, 'handler');
    schema(input, 'rest', 'routes', index, 'input');
    schema(output, 'rest', 'routes', index, 'output');
  }
  for (const [index, { handler: ref, onProvision, auth }] of manifest.webhooks.entries()) {
    handler(ref, 'webhooks', index, 'handler');
    handler(onProvision, 'webhooks', index, 'onProvision');
    if (auth.type === 'custom') handler(auth.validator, 'webhooks', index, 'auth', 'validator');
  }
  for (const [index, { handler: ref, input }] of manifest.jobs.entries()) {
    handler(ref, 'jobs', index, 'handler');
    schema(input, 'jobs', index, 'input');
  }
  handler(manifest.lifecycle?.onEnable, 'lifecycle', 'onEnable');
  handler(manifest.lifecycle?.onDisable, 'lifecycle', 'onDisable');
  return refs;
}

/** The file of a schema reference, when it names one of the plugin's rather than a package. */
function schemaFile(ref: SchemaRef): string | undefined {
  if ('$ref' in ref) return ref.$ref.split('#')[0] || undefined;
  return ref.zod.startsWith('.') ? ref.zod.split('#')[0] : undefined;
}

async function checkFile(root: string, { path, ref, file }: FileRef): Promise<PluginFault | undefined> {
  const fault = (message: string): PluginFault => ({
    code: 'INVALID_HANDLER',
    path,
    message: `"${ref}": ${message}`,
  });
  const asked = join(root, file);
  if (isAbsolute(file) || !isInside(root, asked)) return fault('the file must lie inside the plugin');
  const real = await realpath(asked).catch(() => undefined);
  if (real === undefined) return fault(`there is no file ${file} in the plugin`);
  if (!isInside(root, real)) return fault(`${file} is a symbolic link that leaves the plugin`);
  if (!(await stat(real)).isFile()) return fault(`${file} is not a file`);
  return undefined;
}
