import { isObject } from '../../../kit/config/merge.ts';
import { formatPath } from '../../../kit/config/problems.ts';
import { nearest } from '../../../kit/data/nearest.ts';
import { UsageError } from '../../parse-args.ts';

export type Path = readonly (string | number)[];

/** Parses `gateway.upstreams["rest"].url` or `plugins[0]` into keys. Throws UsageError for an invalid path. */
export function parsePath(text: string): Path {
  const keys: (string | number)[] = [];
  const part = /\.?([\w$-]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;
  while (part.lastIndex < text.length) {
    const at = part.lastIndex;
    const found = part.exec(text);
    if (!found || (at > 0 && found[1] !== undefined && text[at] !== '.')) throw notAPath(text);
    const [, name, index, quoted] = found;
    if (quoted !== undefined) keys.push(unquote(quoted, text));
    else keys.push(name ?? Number(index));
  }
  if (keys.length === 0) throw notAPath(text);
  return keys;
}

/** Returns the value at a path. If the path does not exist, throws UsageError with the existing keys. */
export function valueAt(root: unknown, path: Path): unknown {
  let current = root;
  path.forEach((key, index) => {
    const holds = typeof current === 'object' && current !== null && Object.hasOwn(current, key);
    if (!holds) throw missingKey(path.slice(0, index), key, current);
    current = (current as Record<PropertyKey, unknown>)[key];
  });
  return current;
}

/** Lists all values except non-empty objects, with the path of each value. */
export function leavesOf(value: unknown, at: Path = []): Array<{ path: Path; value: unknown }> {
  if (!isObject(value) || Object.keys(value).length === 0) return [{ path: at, value }];
  return Object.entries(value).flatMap(([key, child]) => leavesOf(child, [...at, key]));
}

function unquote(quoted: string, text: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    throw notAPath(text);
  }
}

function notAPath(text: string): UsageError {
  return new UsageError(
    `"${text}" is not a valid path. Examples: gateway.port, execution.plugins["@acme/x"].`,
  );
}

function missingKey(parent: Path, key: string | number, value: unknown): UsageError {
  const where = parent.length === 0 ? 'The configuration' : formatPath(parent);
  const known = isObject(value) ? Object.keys(value).filter((name) => name !== '$schema') : [];
  const suggestion = nearest(String(key), known);
  const hint = suggestion ? ` Did you mean ${formatPath([...parent, suggestion])}?` : '';
  const existing = known.length > 0 ? ` It has ${known.join(', ')}.` : '';
  return new UsageError(`${where} has no ${JSON.stringify(key)}.${hint}${suggestion ? '' : existing}`);
}
