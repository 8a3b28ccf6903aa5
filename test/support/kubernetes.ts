import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { packageRoot } from '../../src/kit/files/paths.ts';
import type { AnyJson } from './any-json.ts';

const FOLDER = join(packageRoot, 'examples/kubernetes');

/** The objects of all manifests. */
export const manifests: AnyJson[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) => parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8'), { merge: true }))
  .map((document) => {
    if (document.errors.length > 0) throw document.errors[0]!;
    return document.toJS();
  });

export const nameOf = ({ kind, metadata }: AnyJson): string => `${kind} ${metadata.name}`;

export function findManifest(kind: string, name: string): AnyJson {
  const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  if (!found) throw new Error(`no ${kind} ${name}`);
  return found;
}
