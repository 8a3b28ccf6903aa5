import {
  type Document,
  isMap,
  isNode,
  isPair,
  isScalar,
  LineCounter,
  parseDocument,
  type Scalar,
} from 'yaml';
import { formatPath, type Path } from './templates.ts';

/** A fault of a definition with its position in the text. `line` and `column` count from 1. */
export interface TextFault {
  /** Path in the definition, such as `jobs.build.steps[0].if`. Empty for a fault of the whole text. */
  path: string;
  message: string;
  line?: number;
  column?: number;
  /** Trimmed content of the line with the fault. */
  text?: string;
}

/** Position within a string value. `line` and `column` count from 1, as in `details.issues` of an API error. */
export interface PlaceInValue {
  line?: number | undefined;
  column?: number | undefined;
}

export interface DefinitionText {
  /** Parsed definition. Undefined if the text is neither YAML nor JSON. */
  definition: unknown;
  faults: TextFault[];
  /** Adds the text position to a fault. A missing key gets the position of its parent. */
  locate(fault: { path: string | Path; message: string } & PlaceInValue): TextFault;
}

/** Maximum number of YAML aliases. Aliases can expand to many times the size of the file. */
const MAX_ALIASES = 100;

/** Parses a definition as YAML, which is a superset of JSON. Each syntax error contains its line and column. */
export function readDefinition(text: string): DefinitionText {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const lines = text.split('\n');
  const at = (offset: number): Pick<TextFault, 'line' | 'column' | 'text'> => {
    const { line, col } = counter.linePos(offset);
    return { line, column: col, text: (lines[line - 1] ?? '').trim() };
  };
  const locate: DefinitionText['locate'] = ({ path, message, ...inValue }) => {
    const place = offsetOf(document, text, partsOf(path), inValue);
    const told = typeof path === 'string' ? path : formatPath(path);
    return { path: told, message, ...(place === undefined ? {} : at(place)) };
  };
  if (document.errors.length > 0) {
    const faults = document.errors.map(({ message, pos }) => ({ path: '', message, ...at(pos[0]) }));
    return { definition: undefined, faults, locate };
  }
  try {
    return { definition: asJson(document.toJS({ maxAliasCount: MAX_ALIASES })), faults: [], locate };
  } catch (error) {
    return { definition: undefined, faults: [{ path: '', message: (error as Error).message }], locate };
  }
}

/**
 * Converts parsed YAML to plain JSON. Dates become strings, and sets become lists. Throws for circular or too deeply
 * nested values.
 */
function asJson(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value ?? null));
  } catch (error) {
    const why =
      error instanceof RangeError
        ? 'it is nested too deeply'
        : 'an alias (*name) occurs inside the value that it refers to';
    throw new Error(`It cannot be written as JSON: ${why}`, { cause: error });
  }
}

/** Splits a path such as `jobs.build.steps[0]` into keys. */
function partsOf(path: string | Path): Array<string | number> {
  if (typeof path !== 'string') return [...path];
  return [...path.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([part, index]) =>
    index === undefined ? part : Number(index),
  );
}

/** Returns the text offset of the value at a path, or of a position within that value. */
function offsetOf(
  document: Document,
  text: string,
  parts: Array<string | number>,
  { line, column }: PlaceInValue,
): number | undefined {
  const node = document.getIn(parts, true);
  if (isNode(node) && node.range) {
    const isWithin = line !== undefined && column !== undefined && isScalar(node);
    return isWithin
      ? offsetInScalar(node, text, line, column)
      : (keyOffset(document, parts) ?? node.range[0]);
  }
  // A missing key has no position, so the position of its nearest existing ancestor is used.
  if (parts.length > 0) return offsetOf(document, text, parts.slice(0, -1), {});
  return document.range?.[0];
}

/**
 * Returns the text offset of the key of a map or list. A fault points to the key, because the map or list begins after
 * its key.
 */
function keyOffset(document: Document, parts: Array<string | number>): number | undefined {
  const parent = document.getIn(parts.slice(0, -1), true);
  const value = document.getIn(parts, true);
  if (!isMap(parent) || isScalar(value)) return undefined;
  const pair = parent.items.find((item) => isPair(item) && item.value === value);
  return isNode(pair?.key) ? pair.key.range?.[0] : undefined;
}

/**
 * Converts a position in a scalar value to a text offset. The offset is inexact for escape sequences and folded lines.
 */
function offsetInScalar(node: Scalar, text: string, line: number, column: number): number {
  const start = node.range![0];
  if (node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE') return start + column;
  if (node.type !== 'BLOCK_LITERAL' && node.type !== 'BLOCK_FOLDED') return start + column - 1;
  const body = text.indexOf('\n', start) + 1;
  const rows = text.slice(body, node.range![1]).split('\n');
  const indent = /^ */.exec(rows.find((row) => row.trim() !== '') ?? '')![0].length;
  const row = Math.min(line, rows.length) - 1;
  const before = rows.slice(0, row).reduce((sum, each) => sum + each.length + 1, 0);
  return body + before + indent + column - 1;
}
