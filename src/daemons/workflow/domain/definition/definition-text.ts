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

/** A fault of a definition and its place in the text; `line` and `column` count from 1. */
export interface TextFault {
  /** In the definition: `jobs.build.steps[0].if`; empty for the text as a whole. */
  path: string;
  message: string;
  line?: number;
  column?: number;
  /** The line itself, without the blanks around it. */
  text?: string;
}

/** A place within the value at a path, from 1, as `details.issues` of an error has it. */
export interface PlaceInValue {
  line?: number | undefined;
  column?: number | undefined;
}

export interface DefinitionText {
  /** Undefined where the text is neither YAML nor JSON. */
  definition: unknown;
  /** What keeps the text from being read at all. */
  faults: TextFault[];
  /** The fault with its place; a key that is missing has the place of what it is missing in. */
  locate(fault: { path: string | Path; message: string } & PlaceInValue): TextFault;
}

/** An alias may unfold to far more than the file; a definition has no use for many. */
const MAX_ALIASES = 100;

/** Reads a definition as YAML, of which JSON is a part. Every fault of the text is told with its place. */
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

/** Converts to what JSON can hold: dates become texts, sets become lists. Throws for a value without end. */
function asJson(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value ?? null));
  } catch (error) {
    const why =
      error instanceof RangeError
        ? 'it is nested too deeply'
        : 'an alias (*name) stands within what it refers to';
    throw new Error(`It cannot be written as JSON: ${why}`, { cause: error });
  }
}

/** `jobs.build.steps[0]` as keys. */
function partsOf(path: string | Path): Array<string | number> {
  if (typeof path !== 'string') return [...path];
  return [...path.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([part, index]) =>
    index === undefined ? part : Number(index),
  );
}

/** Where a value begins in the text; with a place in the value, that place. */
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
  // The nearest place that is in the text: a missing key has none.
  if (parts.length > 0) return offsetOf(document, text, parts.slice(0, -1), {});
  return document.range?.[0];
}

/** A map or list begins below its key; its key is where a reader looks for it. */
function keyOffset(document: Document, parts: Array<string | number>): number | undefined {
  const parent = document.getIn(parts.slice(0, -1), true);
  const value = document.getIn(parts, true);
  if (!isMap(parent) || isScalar(value)) return undefined;
  const pair = parent.items.find((item) => isPair(item) && item.value === value);
  return isNode(pair?.key) ? pair.key.range?.[0] : undefined;
}

/** A place in a scalar's value as a place in the text: exact but for quoted escapes and folded lines. */
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
