import { isObject } from '../../../kit/config/merge.ts';
import { formatPath } from '../../../kit/config/problems.ts';
import { nearest } from '../../../kit/nearest.ts';
import { UsageError } from '../../parse-args.ts';

export type Path = readonly (string | number)[];

/** `gateway.upstreams["rest"].url` and `plugins[0]` as keys. Throws UsageError for what is no path. */
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

/** The value at a path. Throws UsageError naming what is there instead. */
export function valueAt(root: unknown, path: Path): unknown {
  let current = root;
  path.forEach((key, index) => {
    const holds = typeof current === 'object' && current !== null && Object.hasOwn(current, key);
    if (!holds) throw nothingAt(path.slice(0, index), key, current);
    current = (current as Record<PropertyKey, unknown>)[key];
  });
  return current;
}

/** Every value that is no object, with its path; empty objects count as values. */
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
  return new UsageError(`"${text}" is no path. Write it as gateway.port or execution.plugins["@acme/x"].`);
}

function nothingAt(parent: Path, key: string | number, holder: unknown): UsageError {
  const where = parent.length === 0 ? 'The configuration' : formatPath(parent);
  const known = isObject(holder) ? Object.keys(holder).filter((name) => name !== '$schema') : [];
  const meant = nearest(String(key), known);
  const hint = meant ? ` Did you mean ${formatPath([...parent, meant])}?` : '';
  const there = known.length > 0 ? ` It has ${known.join(', ')}.` : '';
  return new UsageError(`${where} has no ${JSON.stringify(key)}.${hint}${meant ? '' : there}`);
}
