import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { MANIFEST_FILE } from '../../../../contracts/index.ts';
import { jsonFaultOffset } from '../../../../kit/data/json-fault.ts';
import { LiteralPositions, positionAt } from '../../../../kit/data/literal-positions.ts';
import type { PluginFault } from '../../../../plugins/index.ts';
import { remedyFor } from './remedies.ts';

/** A fault of a plugin with its position in a file and a remedy. @spec docs/plugins.md "Faults as JSON" */
export interface LocatedFault {
  code: string;
  /** Path in the manifest, such as `webhooks[0].auth`. Empty if the fault concerns the whole plugin. */
  path: string;
  message: string;
  /** Absolute path of the file with the fault. */
  file: string;
  /** Line and column start at 1. Null if the position is unknown. */
  line: number | null;
  column: number | null;
  remedy: string;
}

type Place = Pick<LocatedFault, 'file' | 'line' | 'column'>;

/** Matches a position in the plugin's code, which faults of handlers, schemas and manifest modules contain. */
const PLACE_IN_CODE = /(?:\(|could not be loaded: )([^()\s:]+\.[cm]?[jt]sx?):(\d+):(\d+)/;
/** Manifests and modules above this size are not scanned for positions. */
const MAX_SCANNED_BYTES = 2 * 1024 * 1024;

/** Adds file, line, column and remedy to the faults of a plugin. */
export function locateFaults(
  folder: string,
  faults: ReadonlyArray<Pick<PluginFault, 'code' | 'path' | 'message'>>,
): LocatedFault[] {
  const manifest = readManifestText(folder);
  return faults.map(({ code, path, message }) => ({
    code,
    path,
    message,
    ...(placeInCode(folder, message) ?? placeInManifest(manifest, path)),
    remedy: remedyFor({ code, path, message }),
  }));
}

/** Formats a position as `plugins/orders/svc.plugin.json:12:5`, relative to the working directory. */
export function placeText({ file, line, column }: Place, cwd: string): string {
  const inside = relative(cwd, file);
  const name = inside.startsWith('..') ? file : inside || '.';
  return line === null ? name : `${name}:${line}${column === null ? '' : `:${column}`}`;
}

interface ManifestText {
  file: string;
  text: string | undefined;
  /** Offset of the manifest's object. Undefined if a module has no default export. */
  start: number | undefined;
  isJson: boolean;
}

function readManifestText(folder: string): ManifestText {
  const file = join(folder, MANIFEST_FILE);
  const module = existsSync(file) ? undefined : moduleOf(folder);
  if (module === undefined) return { file, text: readText(file), start: 0, isJson: true };
  const path = join(folder, module);
  const text = readText(path);
  const start = text === undefined ? undefined : new LiteralPositions(text).defaultExport();
  return { file: path, text, start, isJson: /\.json$/.test(path) };
}

/** Returns the path of the manifest module that `package.json` names. */
function moduleOf(folder: string): string | undefined {
  try {
    const { svc } = JSON.parse(readText(join(folder, 'package.json')) ?? '{}') as { svc?: unknown };
    return typeof svc === 'string' && svc !== '' ? svc : undefined;
  } catch {
    return undefined;
  }
}

function placeInManifest({ file, text, start, isJson }: ManifestText, path: string): Place {
  if (text === undefined || start === undefined) return { file, line: null, column: null };
  const syntaxError = isJson ? jsonFaultOffset(text) : undefined;
  const offset = syntaxError ?? new LiteralPositions(text).find(path, start);
  return { file, ...positionAt(text, offset) };
}

function placeInCode(folder: string, message: string): Place | undefined {
  const [, file, line, column] = PLACE_IN_CODE.exec(message) ?? [];
  if (file === undefined) return undefined;
  const path = join(folder, file);
  return existsSync(path) ? { file: path, line: Number(line), column: Number(column) } : undefined;
}

/** Reads a text file for positions. Replaces a byte-order mark, which has no width in editors. */
function readText(file: string): string | undefined {
  try {
    if (!statSync(file).isFile() || statSync(file).size > MAX_SCANNED_BYTES) return undefined;
    return readFileSync(realpathSync(file), 'utf8').replace(/^\uFEFF/, '');
  } catch {
    return undefined;
  }
}
